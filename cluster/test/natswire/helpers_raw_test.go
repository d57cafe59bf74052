package natswire_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// raw is an end of a Wire that the test controls message by message.
type raw struct {
	t    testing.TB
	nc   *nats.Conn
	sub  *nats.Subscription // of its inbox
	to   string             // the other end
	next uint64             // number
}

// rawFor returns an end that no peer knows.
func rawFor(t testing.TB, nc *nats.Conn) *raw {
	t.Helper()
	sub, err := nc.SubscribeSync(newInbox(nc))
	require.NoError(t, err)
	return &raw{t: t, nc: nc, sub: sub}
}

// rawDial sends a request to a name as a dialling end does, and returns the answer.
func rawDial(t testing.TB, nc *nats.Conn, name string, body []byte) (r *raw, answer *nats.Msg) {
	t.Helper()
	r = rawFor(t, nc)
	require.NoError(t, nc.PublishRequest(meeting+name, r.sub.Subject, body))
	answer = r.receive()
	r.to = answer.Reply
	return r, answer
}

// receive returns the next message.
func (r *raw) receive() *nats.Msg {
	r.t.Helper()
	m, err := natstest.Next(r.sub, hangs)
	require.NoError(r.t, err)
	return m
}

// until returns the bytes behind the header of the next message of a kind.
func (r *raw) until(k messageKind) string {
	r.t.Helper()
	for {
		h, body, err := parseMessage(r.receive().Data)
		require.NoError(r.t, err)
		if h.kind == k {
			return body
		}
	}
}

// send sends a message with the next number.
func (r *raw) send(k messageKind, body string) {
	r.t.Helper()
	r.sendAs(messageHeader{kind: k, number: r.next}, body)
	r.next++
}

// sendAs sends a message with a header.
func (r *raw) sendAs(h messageHeader, body string) {
	r.t.Helper()
	r.publish(h.message(body))
}

func (r *raw) publish(b []byte) {
	r.t.Helper()
	require.NoError(r.t, r.nc.Publish(r.to, b))
}

// answering listens at a name, and answers the first request with the messages of a function.
func answering(t testing.TB, nc *nats.Conn, name string, answer func(r *raw)) {
	t.Helper()
	r := rawFor(t, nc)
	_, err := nc.Subscribe(meeting+name, func(m *nats.Msg) {
		r.to = m.Reply
		answer(r)
	})
	require.NoError(t, err)
	require.NoError(t, natstest.Flush(nc))
}

// welcome answers as a listener does.
func (r *raw) welcome() {
	b := messageHeader{kind: kindWelcome, number: r.next}.message(string(hello(window)))
	r.next++
	r.nc.PublishRequest(r.to, r.sub.Subject, b)
}
