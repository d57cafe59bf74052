package asterisque

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// mostAsked is how many calls of one callback that answers questions may be under way at once,
// where no option says so.
const mostAsked = 1024

// question is a callback that answers questions of this side: whether a peer is accepted, for
// example. It may block, panic or end its goroutine: whoever asks waits for no more than the answer
// and its own context.
type question struct {
	log    *slog.Logger  // these are fixed
	what   string        // it is, for logs and errors
	option string        // that bounds how many calls of it run at once
	places chan struct{} // holds one for each call that has not returned; nil: any number may run
}

func newQuestion(log *slog.Logger, what, option string, most int) question {
	q := question{log: log, what: what, option: option}
	if most > 0 {
		q.places = make(chan struct{}, most)
	}
	return q
}

// enter waits for a place.
func (q *question) enter(ctx context.Context) error {
	if q.places == nil {
		return nil
	}
	select {
	case q.places <- struct{}{}:
		return nil
	default:
	}
	if end, ok := ctx.Deadline(); ok { // a moment is left to tell the peer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)*7/8)
		defer cancel()
	}
	select {
	case q.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return codec.ErrOverloaded.Withf("%d calls of the application's %s have not returned: see %s",
			cap(q.places), q.what, q.option)
	}
}

func (q *question) exit() {
	if q.places != nil {
		<-q.places
	}
}

// unanswered returns the error for a question whose answer has not come before the end of ctx.
func (q *question) unanswered(ctx context.Context) error {
	var why *Abort
	if errors.As(context.Cause(ctx), &why) {
		return why
	}
	a := *contextError(ctx)
	a.Message = fmt.Sprintf("the application's %s has not returned in time", q.what)
	return &a
}

// answer is what a question was answered with.
type answer[T any] struct {
	value T
	err   error
}

// ask returns what f returns, which calls q, or ErrUnavailable if it does not return. f runs on a
// goroutine of its own, and nobody waits for it when ctx ends: what it returns after that goes to
// late, unless that is nil.
func ask[T any](
	ctx context.Context, q *question, f func() (T, error), late func(T),
) (value T, err error) {
	if err := q.enter(ctx); err != nil {
		return value, err
	}
	answered := make(chan answer[T])
	go func() { // ends with f
		defer q.exit()
		a := answer[T]{err: codec.ErrUnavailable.Withf("the application's %s failed: its log says why", q.what)}
		defer func() {
			select {
			case answered <- a:
			case <-ctx.Done():
				if late != nil && a.err == nil {
					guard.Run(q.log, q.what, func() { late(a.value) })
				}
			}
		}()
		guard.Run(q.log, q.what, func() { a.value, a.err = f() })
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return value, q.unanswered(ctx)
	}
}
