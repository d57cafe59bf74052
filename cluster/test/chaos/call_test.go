//go:build unix

package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

// outcome is the final outcome of a call, as known to its caller.
type outcome string

const (
	open       outcome = "has no outcome"
	answered   outcome = "is answered"
	mayHaveRun outcome = "may have run"
	notRun     outcome = "did not run"
	odd        outcome = "has an outcome that is not promised"
)

// call is a durable or posted call, with its history.
type call struct {
	key    []byte // these are fixed
	again  bool   // its function may run more than once
	posted bool
	single bool // it is not retried after a rejection
	work   work

	mu       sync.Mutex
	attempts []attempt // guarded by mu, as all below
	outcome  outcome
	text     string // the answer, or the unexpected error
}

// attempt is one attempt of a caller to run the call, or to get its outcome.
type attempt struct {
	what     string
	from, to time.Time
	err      error
}

func (a attempt) String() string {
	if a.err == nil {
		return fmt.Sprintf("%s  %s until %s: it succeeds", clock(a.from), a.what, clock(a.to))
	}
	return fmt.Sprintf("%s  %s until %s: %v; repeatable: %v", clock(a.from), a.what, clock(a.to), a.err, asterisque.Repeatable(a.err))
}

func newCall() *call { return &call{key: []byte(rand.Text()[:16]), outcome: open} }

// does makes an attempt, and records it.
func (c *call) does(what string, f func() error) error {
	from := time.Now()
	err := f()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts = append(c.attempts, attempt{what, from, time.Now(), err})
	return err
}

func (c *call) end(as outcome, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcome, c.text = as, text
}

// compare compares the answer with a later one.
func (c *call) compare(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text != text {
		c.outcome, c.text = odd, fmt.Sprintf("it was answered with %q, and later with %q", c.text, text)
	}
}

// attempt makes the call with its key, once, on a path.
func (c *call) attempt(ctx context.Context, how string, p path) (text string, err error) {
	err = c.does(how+" on "+p.name, func() (err error) {
		text, err = c.function().Call(ctx, p.on, c.work, asterisque.WithIdempotencyKey(c.key))
		return err
	})
	return text, err
}

// function returns the function of the call.
func (c *call) function() asterisque.Function[work, string] {
	if c.again {
		return rebook
	}
	return book
}

// passes are errors after which a call is retried.
var passes = []error{
	asterisque.ErrUnavailable, asterisque.ErrOverloaded, asterisque.ErrSessionClosed, asterisque.ErrExpired, asterisque.ErrCanceled,
}

// isPassing reports whether err is one of these.
func isPassing(err error) bool {
	for _, p := range passes {
		if errors.Is(err, p) {
			return true
		}
	}
	return false
}

// isVerdict reports whether a node has answered that it is unknown whether the call has run.
func isVerdict(err error) bool {
	var a *asterisque.Abort
	return errors.As(err, &a) && a.Remote && errors.Is(err, asterisque.ErrUnavailable) && !asterisque.Repeatable(err)
}
