package asterisquetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque"
)

// Recorder records calls, their parameters, and their outcome. Its Intercept can be used for the
// calls on one Caller ([asterisque.Intercept]), for those that a node makes or serves
// ([asterisque.WithOutboundInterceptors], [asterisque.WithInboundInterceptors]), or for a single
// one. It does not change the calls. The zero value is ready. It keeps all calls until Reset.
type Recorder struct {
	mu      sync.Mutex
	calls   []*recordedCall // in the order in which they began; guarded by mu, with their fields
	over    int             // guarded by mu; how many of them are over
	epoch   int             // guarded by mu; how often Reset was called
	changed chan struct{}   // guarded by mu; closed when a call is over; nil without a waiter
}

// recordedCall is a call that a recorder keeps, or has removed.
type recordedCall struct {
	Record
	epoch int // how often the recorder had been reset before
}

// Intercept is the [asterisque.Interceptor] that records calls.
func (r *Recorder) Intercept(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	rec := &recordedCall{Record: recordOf(ctx, c)}
	r.begin(rec)
	returned := false
	defer func() {
		if !returned { // it panicked, or ended its goroutine
			r.end(rec, nil, nil, asterisque.ErrPanicked)
		}
	}()
	pipes := c.Blocks() && !c.Inbound()
	if pipes {
		end := func(result []byte, err error) ([]byte, error) {
			r.end(rec, nil, slices.Clone(result), err)
			return result, err
		}
		if err := c.WrapBlocks(asterisque.Blocks{End: end}); err != nil {
			return err
		}
	}
	err := next(ctx, c)
	returned = true
	switch {
	case err != nil:
		r.end(rec, nil, nil, err)
	case !pipes: // streams end later
		r.end(rec, c.Result(), rawResult(c), nil)
	}
	return err
}

func (r *Recorder) begin(rec *recordedCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.epoch = r.epoch
	r.calls = append(r.calls, rec)
}

// end records the outcome of a call. If a call is retried within Intercept, the last outcome
// counts.
func (r *Recorder) end(rec *recordedCall, result any, raw []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := rec.Over || rec.epoch != r.epoch
	rec.Result, rec.RawResult, rec.Err = result, raw, err
	rec.Over, rec.Took = true, time.Since(rec.Began)
	if known {
		return
	}
	r.over++
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Calls returns the calls so far, in the order in which they began. Those that are not over yet
// have no outcome. The list belongs to the caller; values that it refers to do not.
func (r *Recorder) Calls() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.callsLocked()
}

func (r *Recorder) callsLocked() []Record {
	list := make([]Record, len(r.calls))
	for i, c := range r.calls {
		list[i] = c.Record
	}
	return list
}

// Of returns the calls of one function, as Calls.
func (r *Recorder) Of(function Numbered) []Record {
	return slices.DeleteFunc(r.Calls(), func(c Record) bool { return c.Function != function.Number() })
}

// Await waits until n calls are over, and returns all calls so far. The error is that of ctx.
func (r *Recorder) Await(ctx context.Context, n int) ([]Record, error) {
	for {
		r.mu.Lock()
		list, over := r.callsLocked(), r.over
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		if over >= n {
			return list, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return list, ctx.Err()
		}
	}
}

// Reset removes all calls, those that still run included.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls, r.over = nil, 0
	r.epoch++
}

// ParamsOf returns the parameters of the calls of f, in the order in which they began. It fails the
// test if one of them was untyped, because its parameters are no P.
func ParamsOf[P, R any](t testing.TB, r *Recorder, f asterisque.Function[P, R]) []P {
	t.Helper()
	return listOf[P](t, r.Of(f))
}

// StreamParamsOf is ParamsOf for a function that carries Blocks.
func StreamParamsOf[P, S, R, T any](t testing.TB, r *Recorder, f asterisque.StreamFunction[P, S, R, T]) []P {
	t.Helper()
	return listOf[P](t, r.Of(f))
}

func listOf[P any](t testing.TB, calls []Record) []P {
	t.Helper()
	list := make([]P, 0, len(calls))
	for _, c := range calls {
		p, ok := as[P](c.Params)
		if !ok || c.RawParams != nil {
			t.Errorf("asterisquetest: %v: its parameters are no %T", c, p)
		}
		list = append(list, p)
	}
	return list
}
