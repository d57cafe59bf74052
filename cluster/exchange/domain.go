package exchange

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// ClaimedError says that another exchange with the same id runs, in the same domain of NATS or in
// another one. Give each its own Config.ID, or end the other one.
type ClaimedError struct {
	ID     string // of both
	Domain string // of JetStream, where this one would be; empty: it has no name
	Other  string // where the other one is
}

// Error implements error.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("exchange: %s, of the domain %q, is there already, in the domain %q: give each exchange an id of its own", e.ID, e.Domain, e.Other)
}

// claimTime is how long an exchange waits for others that start at the same time.
const claimTime = 250 * time.Millisecond

// domain is a domain of JetStream, whose nodes a cluster knows, as a part of what NATS reaches: one
// of several sites that leaf nodes join. Exchanges of different domains ask each other.
type domain struct {
	cluster  *cluster.Cluster // these are fixed
	nc       *nats.Conn
	name     string
	id       string // of the exchange
	instance string // another one for each exchange

	subs []*nats.Subscription // set before anybody else knows of it

	claimed atomic.Pointer[ClaimedError] // the id is that of another exchange, too
}

// askAgain is how often an exchange asks whether another one has its id: one that could not be
// reached before.
const askAgain = 30 * time.Second

// watchClaim asks again and again, until ctx ends.
func (d *domain) watchClaim(ctx context.Context, log *slog.Logger) {
	for wait.HoldOff(ctx, askAgain) {
		d.lookForOther(ctx, log)
	}
}

// lookForOther asks once, and says what is new.
func (d *domain) lookForOther(ctx context.Context, log *slog.Logger) {
	var other *ClaimedError
	if err := d.ask(ctx, d.subject("id."+d.id)); errors.As(err, &other) && d.claimed.Load() == nil {
		log.Error("exchange: another one has the same id", "error", err)
	}
	d.claimed.Store(other)
}

// claim is what an exchange says of its id, and what it is asked.
type claim struct {
	Instance string `json:"instance"`
	Domain   string `json:"domain"`
}

// newDomain claims the id of an exchange, and finds out in which domain it is.
func newDomain(ctx context.Context, c *cluster.Cluster, id string) (*domain, error) {
	d := &domain{cluster: c, nc: c.Conn(), id: id, instance: rand.Text()}
	js, err := jetstream.New(d.nc)
	if err != nil {
		return nil, err
	}
	info, err := js.AccountInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("exchange: the domain of NATS is not known: %w", err)
	}
	d.name = info.Domain
	if err := d.claim(ctx); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// subject returns where exchanges of a cluster say something to each other.
func (d *domain) subject(what string) string {
	return "asterisque.exchange." + d.cluster.Prefix() + "." + what
}

// claim asks whether another exchange has the id, and answers those who ask from now on. Of those
// that ask at the same time one remains.
func (d *domain) claim(ctx context.Context) error {
	subject := d.subject("id." + d.id)
	if err := d.ask(ctx, subject); err != nil {
		return err
	}
	err := d.subscribe(subject, "", func(m *nats.Msg) {
		var other claim
		if json.Unmarshal(m.Data, &other) == nil && other.Instance > d.instance {
			m.Respond(d.encode())
		}
	})
	if err != nil {
		return err
	}
	again, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	if err := d.ask(again, subject); err != nil {
		return err
	}
	return d.answerAll(subject)
}

// answerAll lets everybody who asks for the id know that it is claimed.
func (d *domain) answerAll(subject string) error {
	return d.subscribe(subject, "", func(m *nats.Msg) {
		var other claim
		if json.Unmarshal(m.Data, &other) == nil && other.Instance != d.instance {
			m.Respond(d.encode())
		}
	})
}

func (d *domain) encode() []byte {
	b, _ := json.Marshal(claim{d.instance, d.name}) // strings can be encoded
	return b
}

// ask returns a ClaimedError if another exchange answers for an id until ctx ends, or the first one
// that is asked has had a second.
func (d *domain) ask(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := d.nc.RequestWithContext(ctx, subject, d.encode())
	switch { // this exchange does not answer itself
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return nil
	case err != nil:
		return fmt.Errorf("exchange: asking for others with the id %s: %w", d.id, err)
	}
	var other claim
	if err := json.Unmarshal(m.Data, &other); err != nil {
		return fmt.Errorf("exchange: what answers for the id %s is none: %w", d.id, err)
	}
	return &ClaimedError{ID: d.id, Domain: d.name, Other: other.Domain}
}

// subscribe lets f be called with what comes at a subject, and waits until NATS knows. Of those in
// a group, which may be empty, one gets each message.
func (d *domain) subscribe(subject, group string, f nats.MsgHandler) (err error) {
	var sub *nats.Subscription
	if group == "" {
		sub, err = d.nc.Subscribe(subject, f)
	} else {
		sub, err = d.nc.QueueSubscribe(subject, group, f)
	}
	if err == nil {
		d.subs = append(d.subs, sub)
		err = d.nc.FlushTimeout(patience)
	}
	if err != nil {
		return fmt.Errorf("exchange: listening at %s: %w", subject, err)
	}
	return nil
}

// close ends what was begun.
func (d *domain) close() {
	for _, s := range d.subs {
		s.Unsubscribe() // an error says that the connection is closed
	}
}
