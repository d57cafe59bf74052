package pool

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque"
)

// durable is what is known of a durable call whose server shares its answers with others. Without
// such a server it is the zero value, and says nothing.
type durable struct {
	answers string // of the servers that the call may go to
	open    bool   // it may have run
}

// keySize is that of an idempotency key which nobody can guess, in bytes.
const keySize = 16

// keep gives a durable call a key, as soon as there is a server that shares its answers, and lets
// choose find only those that do.
func (d *durable) keep(c *asterisque.Call, s *server, choose chooser) chooser {
	if d.answers != "" || s.address.Answers == "" || !c.Durable() {
		return choose
	}
	d.answers = s.address.Answers
	if c.IdempotencyKey() == nil {
		key := make([]byte, keySize)
		rand.Read(key)           // never fails
		c.SetIdempotencyKey(key) // which fits
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

// refusedAgain is after how long a durable call that may have run goes out again when a server has
// refused it.
const refusedAgain = 200 * time.Millisecond

// after is Pool.after, for a durable call: one that has lost its session goes to another server,
// which knows whether it has run; and one that may have run is not given up for a refusal, which
// tells nothing of that.
func (d *durable) after(ctx context.Context, p *Pool, s *server, on *asterisque.Session, err error) verdict {
	v := p.after(s, on, err)
	switch {
	case d.answers == "":
	case !asterisque.Repeatable(err) && !s.stillOn(on): // an answer it gets once more
		d.open = true
		return anywhere
	case d.open && refusedForNow(err):
		p.sleep(ctx, refusedAgain)
		return anywhere
	}
	return v
}

// outcome returns the error of a call that failed with err on a session when ctx had ended. If the
// session has ended too, a durable call ends with ctx: another server would have gone on with it.
func (d *durable) outcome(ctx context.Context, on *asterisque.Session, err error) error {
	var a *asterisque.Abort
	if d.answers == "" || on != nil && on.Err() == nil || !errors.As(err, &a) {
		return err
	}
	var why *asterisque.Abort
	if a.Remote && !(errors.As(on.Err(), &why) && why.Code == a.Code) {
		return err // an answer
	}
	end := endOf(ctx)
	end.Ran = a.Ran
	return end
}

// refusedForNow reports whether a call was refused with err for a reason that may pass.
func refusedForNow(err error) bool {
	return asterisque.Repeatable(err) && (errors.Is(err, asterisque.ErrUnavailable) || errors.Is(err, asterisque.ErrOverloaded))
}

// sleep waits for d, and not beyond the end of ctx or of the pool.
func (p *Pool) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
}
