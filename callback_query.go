package asterisque

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// mostAsked bounds the concurrent calls of one callback of type question without an option for it.
const mostAsked = 1024

// callbackQuery is a callback with a result, which decides on a peer, for example. It may block,
// panic or end its goroutine: callers wait for no more than the answer and their own context.
type callbackQuery struct {
	log    *slog.Logger  // these are fixed
	what   string        // name of the callback, for logs and errors
	option string        // option that bounds its concurrent calls
	places chan struct{} // holds one for each call that has not returned; nil: no bound
}

func newQuestion(log *slog.Logger, what, option string, most int) callbackQuery {
	q := callbackQuery{log: log, what: what, option: option}
	if most > 0 {
		q.places = make(chan struct{}, most)
	}
	return q
}

// enter waits for a place.
func (q *callbackQuery) enter(ctx context.Context) error {
	if q.places == nil {
		return nil
	}
	select {
	case q.places <- struct{}{}:
		return nil
	default:
	}
	if end, ok := ctx.Deadline(); ok { // leaves time to notify the peer
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

func (q *callbackQuery) exit() {
	if q.places != nil {
		<-q.places
	}
}

// unanswered returns the error for a question that was not answered before the end of ctx.
func (q *callbackQuery) unanswered(ctx context.Context) error {
	var why *Abort
	if errors.As(context.Cause(ctx), &why) {
		return why
	}
	a := *aborts.OfContext(ctx)
	a.Message = fmt.Sprintf("the application's %s has not returned in time", q.what)
	return &a
}

// callbackResult is the answer to a question.
type callbackResult[T any] struct {
	value T
	err   error
}

// ask returns the results of f, which calls q, or ErrUnavailable if f does not return normally. f
// runs on a goroutine of its own, for which ask does not wait after the end of ctx: late then
// receives the value, unless late is nil.
func ask[T any](
	ctx context.Context, q *callbackQuery, f func() (T, error), late func(T),
) (value T, err error) {
	if err := q.enter(ctx); err != nil {
		return value, err
	}
	answered := make(chan callbackResult[T])
	go func() { // ends with f
		defer q.exit()
		a := callbackResult[T]{err: codec.ErrUnavailable.Withf("the application's %s failed: its log says why", q.what)}
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
