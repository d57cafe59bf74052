package jobqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// takenMessage is a message that was delivered to this node, and is not acknowledged yet.
type takenMessage struct {
	nc  *nats.Conn // fixed, as msg is
	msg *nats.Msg
}

// take requests a message of a class from JetStream. It returns nil if there is none now.
func (q *queue) take(ctx context.Context, nc *nats.Conn, class int) (*takenMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	subject := fmt.Sprintf("$JS.API.CONSUMER.MSG.NEXT.%s.%s", q.stream.CachedInfo().Config.Name, consumerName(class))
	m, err := asked(ctx, nc, subject, []byte(`{"batch":1,"no_wait":true}`))
	switch {
	case err != nil:
		return nil, err
	case strings.HasPrefix(m.Reply, "$JS.ACK."):
		return &takenMessage{nc, m}, nil
	}
	status := m.Header.Get("Status")
	if status == "503" { // no responders
		return nil, nats.ErrNoResponders
	}
	if status == "404" || status == "408" {
		return nil, nil
	}
	return nil, fmt.Errorf("JetStream hands nothing out: %s %s", status, m.Header.Get("Description"))
}

// asked is nc.RequestWithContext with an inbox of its own: a delivered message arrives with the
// subject of its post, by which package nats cannot find the requester.
func asked(ctx context.Context, nc *nats.Conn, subject string, data []byte) (*nats.Msg, error) {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe() // fails if the connection is closed
	if err := nc.PublishRequest(subject, inbox, data); err != nil {
		return nil, err
	}
	return sub.NextMsgWithContext(ctx)
}

// done acknowledges the message, and waits for the confirmation of JetStream.
func (t *takenMessage) done(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	_, err := t.nc.RequestWithContext(ctx, t.msg.Reply, []byte("+ACK"))
	return err
}

// goesOn reports that this node still has the message.
// a lost report is repeated
func (t *takenMessage) goesOn() { t.nc.Publish(t.msg.Reply, []byte("+WPI")) }

// back returns the message, to be delivered again after a delay. If this request is lost, the
// message is delivered again after defaultAgain.
func (t *takenMessage) back(delay time.Duration) {
	text, _ := json.Marshal(struct { // a number can be encoded
		Delay time.Duration `json:"delay"`
	}{delay})
	t.nc.Publish(t.msg.Reply, append([]byte("-NAK "), text...))
}

// never reports that the message must not be delivered again.
func (t *takenMessage) never() { t.nc.Publish(t.msg.Reply, []byte("+TERM")) }

// defaultAgain is the time without a sign of its node after which a message is delivered again.
const defaultAgain = 15 * time.Second

func consumerName(class int) string { return "class" + strconv.Itoa(class) }

// consumers creates the JetStream consumers, one for each class.
func (q *queue) consumers(ctx context.Context, again time.Duration, replicas int) error {
	for class := range classes {
		want := jetstream.ConsumerConfig{
			Durable:       consumerName(class),
			FilterSubject: q.subject + "." + strconv.Itoa(class),
			AckPolicy:     jetstream.AckExplicitPolicy,
			AckWait:       again,
			MaxDeliver:    -1,
			MaxAckPending: -1,
			Replicas:      replicas,
		}
		_, err := q.stream.CreateConsumer(ctx, want)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
			return err
		}
	}
	return nil
}
