// Package callback calls functions of the application that may block, panic or end their goroutine.
// A [Query] asks one for a result, and no caller waits beyond its own context. [Reports] notifies
// functions that only observe, and no operation waits for them.
package callback

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

// DefaultCalls bounds the concurrent calls of a callback that has no option for that.
const DefaultCalls = 1024

// Query is a callback with a result, which decides on a peer, for example.
type Query struct {
	log    *slog.Logger  // these are fixed
	name   string        // of the callback, for logs and errors
	option string        // option that bounds its concurrent calls
	places chan struct{} // holds one for each call that has not returned; nil: no bound
}

// NewQuery returns the Query of the callback with this name. The option bounds its concurrent calls
// to most, 0 being none. Failures of the callback are logged.
func NewQuery(log *slog.Logger, name, option string, most int) Query {
	q := Query{log: log, name: name, option: option}
	if most > 0 {
		q.places = make(chan struct{}, most)
	}
	return q
}

// enter waits for a place.
func (q *Query) enter(ctx context.Context) error {
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
			cap(q.places), q.name, q.option)
	}
}

func (q *Query) exit() {
	if q.places != nil {
		<-q.places
	}
}

// unanswered returns the error for a query that was not answered before the end of ctx.
func (q *Query) unanswered(ctx context.Context) error {
	var why *codec.Abort
	if errors.As(context.Cause(ctx), &why) {
		return why
	}
	a := *aborts.OfContext(ctx)
	a.Message = fmt.Sprintf("the application's %s has not returned in time", q.name)
	return &a
}

// result is the answer to a query.
type result[T any] struct {
	value T
	err   error
}

// Ask returns the results of f, which calls the callback of q, or ErrUnavailable if f does not
// return normally. f runs on a goroutine of its own, for which Ask does not wait after the end of
// ctx: late then receives the value, unless late is nil. Beyond the bound of q, Ask waits until an
// earlier call has returned, and returns ErrOverloaded after seven eighths of the time of ctx.
func Ask[T any](
	ctx context.Context, q *Query, f func() (T, error), late func(T),
) (value T, err error) {
	if err := q.enter(ctx); err != nil {
		return value, err
	}
	answered := make(chan result[T])
	go func() { // ends with f
		defer q.exit()
		a := result[T]{err: codec.ErrUnavailable.Withf("the application's %s failed: its log says why", q.name)}
		defer func() {
			select {
			case answered <- a:
			case <-ctx.Done():
				if late != nil && a.err == nil {
					guard.Run(q.log, q.name, func() { late(a.value) })
				}
			}
		}()
		guard.Run(q.log, q.name, func() { a.value, a.err = f() })
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return value, q.unanswered(ctx)
	}
}
