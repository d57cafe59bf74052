package pool

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque"
)

// durableAffinity is the state of a durable call on a server that shares its answers with other
// servers. Otherwise it stays the zero value, without effect.
type durableAffinity struct {
	answers string // the Answers of the servers that the call may use
	open    bool   // the call may have run
}

// keySize is the size in bytes of an idempotency key that cannot be guessed.
const keySize = 16

// keep gives a durable call a key as soon as a server that shares its answers is chosen. From then
// on the returned chooser selects only servers with the same Answers.
func (d *durableAffinity) keep(c *asterisque.Call, s *server, choose chooser) chooser {
	if d.answers != "" || s.address.Answers == "" || !c.Durable() {
		return choose
	}
	d.answers = s.address.Answers
	if c.IdempotencyKey() == nil {
		key := make([]byte, keySize)
		rand.Read(key)           // never fails
		c.SetIdempotencyKey(key) // which always fits
	}
	return func(tried []*server) (*server, bool, error) {
		for {
			s, ready, err := choose(tried)
			if s == nil || s.address.Answers == d.answers {
				return s, ready, err
			}
			tried = append(slices.Clip(tried), s)
		}
	}
}

// refusedAgain is the delay before the retry of a durable call that may have run and that a server
// has rejected.
const refusedAgain = 200 * time.Millisecond

// after is like Pool.after, for a durable call. A call that has lost its session is retried on
// another server, which knows whether it has run. A call that may have run is retried after a
// rejection, which does not say whether it has run.
func (d *durableAffinity) after(ctx context.Context, p *Pool, s *server, on *asterisque.Session, err error) retryVerdict {
	v := p.after(s, on, err)
	switch {
	case d.answers == "":
	case !asterisque.Repeatable(err) && !s.stillOn(on): // the answer will be sent once more
		d.open = true
		return anywhere
	case d.open && refusedForNow(err):
		p.sleep(ctx, refusedAgain)
		return anywhere
	}
	return v
}

// outcome returns the error of a call that failed with err on a session when ctx had ended. If the
// session has ended too, a durable call ends with ctx: another server would have continued it.
func (d *durableAffinity) outcome(ctx context.Context, on *asterisque.Session, err error) error {
	var a *asterisque.Abort
	if d.answers == "" || on != nil && on.Err() == nil || !errors.As(err, &a) {
		return err
	}
	var why *asterisque.Abort
	if a.Remote && !(errors.As(on.Err(), &why) && why.Code == a.Code) {
		return err // a final answer
	}
	end := endOf(ctx)
	end.Ran = a.Ran
	return end
}

// refusedForNow reports whether a call was rejected with err for a temporary reason.
func refusedForNow(err error) bool {
	return asterisque.Repeatable(err) && (errors.Is(err, asterisque.ErrUnavailable) || errors.Is(err, asterisque.ErrOverloaded))
}

// sleep waits for d, or until ctx or the pool ends.
func (p *Pool) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
}
