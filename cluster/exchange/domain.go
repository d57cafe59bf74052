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

// ClaimedError reports that another exchange with the same id runs, in the same domain of NATS or
// in another one. Give each its own Config.ID, or stop the other one.
type ClaimedError struct {
	ID     string // of both exchanges
	Domain string // JetStream domain of this exchange; empty: it has no name
	Other  string // domain of the other exchange
}

// Error implements error.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("exchange: %s, of the domain %q, is there already, in the domain %q: give each exchange an id of its own", e.ID, e.Domain, e.Other)
}

// claimTime is how long an exchange waits for other exchanges that start at the same time.
const claimTime = 250 * time.Millisecond

// domain is a JetStream domain with the nodes of one cluster, as a part of a NATS network: one of
// several sites that are connected by leaf nodes. Exchanges query those of other domains.
type domain struct {
	cluster  *cluster.Cluster // fixed, as all up to instance
	nc       *nats.Conn
	name     string
	id       string // of the exchange
	instance string // differs for each exchange

	subs []*nats.Subscription // set before the domain is shared

	claimed atomic.Pointer[ClaimedError] // not nil if another exchange has the same id
}

// askAgain is the interval of checks for another exchange with the same id, which may have been
// unreachable before.
const askAgain = 30 * time.Second

// watchClaim repeats the check, until ctx ends.
func (d *domain) watchClaim(ctx context.Context, log *slog.Logger) {
	for wait.HoldOff(ctx, askAgain) {
		d.lookForOther(ctx, log)
	}
}

// lookForOther makes one check, and logs a new conflict.
func (d *domain) lookForOther(ctx context.Context, log *slog.Logger) {
	var other *ClaimedError
	if err := d.ask(ctx, d.subject("id."+d.id)); errors.As(err, &other) && d.claimed.Load() == nil {
		log.Error("exchange: another one has the same id", "error", err)
	}
	d.claimed.Store(other)
}

// idClaim is the message by which exchanges check an id, and its answer.
type idClaim struct {
	Instance string `json:"instance"`
	Domain   string `json:"domain"`
}

// newDomain claims the id of an exchange, and determines its domain.
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

// subject returns the subject of a message between the exchanges of a cluster.
func (d *domain) subject(what string) string {
	return "asterisque.exchange." + d.cluster.Prefix() + "." + what
}

// claim checks whether another exchange has the id, and answers the checks of other exchanges from
// then on. If several exchanges check at the same time, one of them succeeds.
func (d *domain) claim(ctx context.Context) error {
	subject := d.subject("id." + d.id)
	if err := d.ask(ctx, subject); err != nil {
		return err
	}
	err := d.subscribe(subject, "", func(m *nats.Msg) {
		var other idClaim
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

// answerAll answers all checks of the id from other exchanges.
func (d *domain) answerAll(subject string) error {
	return d.subscribe(subject, "", func(m *nats.Msg) {
		var other idClaim
		if json.Unmarshal(m.Data, &other) == nil && other.Instance != d.instance {
			m.Respond(d.encode())
		}
	})
}

func (d *domain) encode() []byte {
	b, _ := json.Marshal(idClaim{d.instance, d.name}) // strings can be encoded
	return b
}

// ask returns a ClaimedError if another exchange answers for an id within a second, or until ctx
// ends.
func (d *domain) ask(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := d.nc.RequestWithContext(ctx, subject, d.encode())
	switch { // this exchange does not answer itself
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return nil
	case err != nil:
		return fmt.Errorf("exchange: asking for other exchanges with the id %s: %w", d.id, err)
	}
	var other idClaim
	if err := json.Unmarshal(m.Data, &other); err != nil {
		return fmt.Errorf("exchange: the answer for the id %s is invalid: %w", d.id, err)
	}
	return &ClaimedError{ID: d.id, Domain: d.name, Other: other.Domain}
}

// subscribe calls f with the messages at a subject, and waits until NATS has confirmed the
// subscription. With a group, one member of the group gets each message.
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

// close ends the subscriptions.
func (d *domain) close() {
	for _, s := range d.subs {
		s.Unsubscribe() // an error means that the connection is closed
	}
}
