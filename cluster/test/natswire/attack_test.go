package natswire_test

import (
	"io"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// A hostile client ends only its Wire.
func TestAttack_HostileClient(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	hostile := connectTo(t, s)
	lost := func(want, got uint64) func(t *testing.T, err error) {
		return func(t *testing.T, err error) {
			var sequence *natswire.SequenceError
			require.ErrorAs(t, err, &sequence)
			require.Equal(t, natswire.SequenceError{Want: want, Got: got}, *sequence)
		}
	}
	foreign := func(t *testing.T, err error) { require.ErrorIs(t, err, natswire.ErrForeign) }
	for name, c := range map[string]struct {
		send func(r *raw)
		want func(t *testing.T, err error)
	}{
		"a gap":                   {func(r *raw) { r.sendAs(messageHeader{kind: kindData, number: 4}, "x") }, lost(1, 4)},
		"a repetition":            {func(r *raw) { r.sendAs(messageHeader{kind: kindData}, "x") }, lost(1, 0)},
		"the largest number":      {func(r *raw) { r.sendAs(messageHeader{kind: kindData, number: 1<<64 - 1}, "x") }, lost(1, 1<<64-1)},
		"garbage":                 {func(r *raw) { r.publish([]byte("hello")) }, foreign},
		"nothing":                 {func(r *raw) { r.publish(nil) }, foreign},
		"a kind that is not":      {func(r *raw) { r.send(99, "") }, foreign},
		"the kind 0":              {func(r *raw) { r.send(0, "") }, foreign},
		"another welcome":         {func(r *raw) { r.send(kindWelcome, string(hello(window))) }, foreign},
		"a refusal too late":      {func(r *raw) { r.send(kindRefusal, "no") }, foreign},
		"bytes taken before sent": {func(r *raw) { r.sendAs(messageHeader{kindState, 1, 1 << 40}, "") }, foreign},
	} {
		t.Run(name, func(t *testing.T) {
			r, answer := rawDial(t, hostile, "name", hello(window))
			there, err := ln.Accept()
			require.NoError(t, err)
			defer there.Close()
			require.NotEmpty(t, answer.Reply)
			r.send(kindData, "\x00\x00\x00\x02ok")
			frame, err := there.ReadFrame(most)
			require.NoError(t, err)
			require.Equal(t, "ok", string(frame))

			c.send(r)
			c.want(t, readError(there))
			require.Error(t, there.WriteFrames([][]byte{{1}}))
			require.NotEmpty(t, r.until(kindEnd), "the peer receives the reason")
			here, there := pairAt(t, ln, wire.Options{})
			carries(t, here, there, "other wires continue")
		})
	}
}

// A peer that exceeds the window is disconnected.
func TestAttack_BeyondWindow(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	r, _ := rawDial(t, connectTo(t, s), "name", hello(window))
	there, err := ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	// one frame; the peer takes no byte of it while the Wire is not read
	for range window/largest + 1 {
		r.send(kindData, strings.Repeat("x", largest-headerSize))
	}
	require.Contains(t, r.until(kindEnd), "window")
	require.ErrorIs(t, there.WriteFrames([][]byte{{1}}), natswire.ErrForeign)
}

// Many empty messages are bounded as large ones are.
func TestAttack_EmptyMessages(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	r, _ := rawDial(t, connectTo(t, s), "name", hello(window))
	there, err := ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	for range window/overhead + 1 {
		r.send(kindData, "")
	}
	require.Error(t, readError(there), "it is cut off, or its messages are lost")
	require.NotEmpty(t, r.until(kindEnd))
}

// A request without an inbox gets no answer.
func TestAttack_RequestNoInbox(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	nc := connectTo(t, s)
	var heard []*nats.Subscription
	for _, reply := range []string{"orders.created", "_INBOX.abc", "orders." + strings.Repeat("a", secretSize), strings.Repeat("A", secretSize), "$JS." + strings.Repeat("A", secretSize)} {
		sub, err := nc.SubscribeSync(reply)
		require.NoError(t, err)
		heard = append(heard, sub)
		require.NoError(t, nc.PublishRequest(meeting+"name", reply, hello(window)))
	}
	require.NoError(t, nc.Publish(meeting+"name", hello(window)))
	here, there := pairAt(t, ln, wire.Options{}) // is answered behind those
	carries(t, here, there, "all is well")
	require.NoError(t, nc.Flush())
	for _, sub := range heard {
		n, _, err := sub.Pending()
		require.NoError(t, err)
		require.Zero(t, n, sub.Subject)
	}
}

// A request without a waiting peer is forgotten.
func TestAttack_RequestUnwaited(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	nc := connectTo(t, s)
	require.NoError(t, nc.PublishRequest(meeting+"name", newInbox(nc), hello(window)))
	there, err := ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	require.ErrorIs(t, readError(there), natswire.ErrPeerGone, "the NATS server reports at once that the answer has no reader")
}

// A bad request is refused with a reason.
func TestAttack_BadRequest(t *testing.T) {
	s := broker(t)
	listenAt(t, s.ClientURL()+"/name", wire.Options{})
	nc := connectTo(t, s)
	for name, body := range map[string][]byte{
		"empty":              nil,
		"of another version": []byte("asterisque/nats/9\x00\x00\x10\x00\x00"),
		"cut off":            hello(window)[:greetingSize-1],
		"a tiny window":      hello(1),
	} {
		t.Run(name, func(t *testing.T) {
			_, answer := rawDial(t, nc, "name", body)
			h, why, err := parseMessage(answer.Data)
			require.NoError(t, err)
			require.Equal(t, kindRefusal, h.kind)
			require.Contains(t, why, natswire.ErrForeign.Error())
		})
	}
}

// A listener that answers badly fails the dial.
func TestAttack_BadListener(t *testing.T) {
	s := broker(t)
	nc := connectTo(t, s)
	reply := func(h messageHeader, to, body string) func(r *raw) {
		return func(r *raw) {
			r.nc.PublishMsg(&nats.Msg{Subject: r.to, Reply: to, Data: h.message(body)})
		}
	}
	welcome, inbox := messageHeader{kind: kindWelcome}, newInbox(nc)
	for name, c := range map[string]struct {
		answer func(r *raw)
		want   error
	}{
		"refuses":         {func(r *raw) { r.send(kindRefusal, "not today") }, natswire.ErrRefused},
		"garbage":         {func(r *raw) { r.publish([]byte("hello")) }, natswire.ErrForeign},
		"data":            {func(r *raw) { r.send(kindData, "x") }, natswire.ErrForeign},
		"no greeting":     {reply(welcome, inbox, ""), natswire.ErrForeign},
		"no inbox":        {reply(welcome, "", string(hello(window))), natswire.ErrForeign},
		"another's inbox": {reply(welcome, "orders.created", string(hello(window))), natswire.ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			at := strings.ReplaceAll(name, " ", "-")
			answering(t, nc, at, c.answer)
			_, err := natswire.Dial(t.Context(), nc, at, nil)
			require.ErrorIs(t, err, c.want)
		})
	}
}

// The final text of a peer is in the error.
func TestEnd_TextOfPeer(t *testing.T) {
	s := broker(t)
	ln := listenAt(t, s.ClientURL()+"/name", wire.Options{})
	nc := connectTo(t, s)
	for said, want := range map[string]error{"": io.EOF, "no \x00 memory": natswire.ErrPeerFailed, strings.Repeat("long", 1000): natswire.ErrPeerFailed} {
		r, _ := rawDial(t, nc, "name", hello(window))
		there, err := ln.Accept()
		require.NoError(t, err)
		defer there.Close()
		r.send(kindEnd, said)
		err = readError(there)
		require.ErrorIs(t, err, want)
		require.Less(t, len(err.Error()), 2*maxReason)
		require.NotContains(t, err.Error(), "\x00")
	}
}
