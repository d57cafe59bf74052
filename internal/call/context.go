package call

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/sharing"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// The context of a handler is its call.

// expiry returns the deadline of a handler, of an Open that arrives now with this rest of its time
// to live.
func expiry(clock *Clock, left time.Duration) time.Duration { return clock.Now() + left }

// Deadline implements context.Context: see expiry.
func (c *Inbound) Deadline() (at time.Time, ok bool) {
	if c.expires == 0 {
		return at, false
	}
	return c.calls().clock().TimeAt(c.expires), true
}

// Value implements context.Context.
func (c *Inbound) Value(key any) any {
	switch key {
	case inboundParentKey{}:
		return c
	case sharing.Key{}:
		return sharing.Basis{Node: c.calls().out.common, Handler: c.Handler, Codec: c.calls().Coder.Values.Name()}
	}
	return nil
}

// Err implements context.Context.
func (c *Inbound) Err() error { return c.ending.err(c.expires, c.calls().clock()) }

// Done implements context.Context.
func (c *Inbound) Done() <-chan struct{} { return c.ending.done(c.expires, c.calls().clock()) }

// AfterFunc calls f in a goroutine of its own when c ends, unless stop is called before. Because of
// this method, contexts derived from c need no goroutine that watches c.
func (c *Inbound) AfterFunc(f func()) (stop func() bool) {
	return c.ending.afterFunc(c.expires, c.calls().clock(), f)
}

// callEnd is the end of the context of a call, and its watchers. Its channel and its timer are made
// on demand. The expiry of the call, and the clock for that, are those of the call.
type callEnd struct {
	mu    sync.Mutex
	watch *contextWatch // guarded by mu; nil until the call has ended or has a watcher
}

// err returns the error of the context, or nil before its end.
func (e *callEnd) err(expires time.Duration, clock *Clock) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.endedLocked() == notEnded && expires > 0 && clock.Now() >= expires {
		e.endLocked(expired)
	}
	return e.endedLocked().err()
}

// done returns a channel that is closed at the end.
func (e *callEnd) done(expires time.Duration, clock *Clock) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.watchLocked(expires, clock).done
}

func (e *callEnd) endedLocked() contextEnd {
	if e.watch == nil {
		return notEnded
	}
	return e.watch.ended
}

func (e *callEnd) watchLocked(expires time.Duration, clock *Clock) *contextWatch {
	if e.watch == nil {
		e.watch = &contextWatch{done: make(chan struct{})}
		if expires > 0 {
			e.watch.timer = time.AfterFunc(expires-clock.Now(), func() { e.end(expired) })
		}
	}
	return e.watch
}

// afterFunc registers f for the end.
func (e *callEnd) afterFunc(expires time.Duration, clock *Clock, f func()) (stop func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.endedLocked() != notEnded {
		go f() // as in end
		return func() bool { return false }
	}
	key, w := &afterFunc{f}, e.watchLocked(expires, clock)
	if w.afters == nil {
		w.afters = make(map[*afterFunc]struct{})
	}
	w.afters[key] = struct{}{}
	return func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		_, ok := w.afters[key]
		delete(w.afters, key)
		return ok
	}
}

// end ends the context, unless it has ended.
func (e *callEnd) end(how contextEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.endLocked(how)
}

func (e *callEnd) endLocked(how contextEnd) {
	switch w := e.watch; {
	case w == nil:
		e.watch = endedUnwatched[how]
	case w.ended == notEnded:
		w.end(how)
	}
}

// contextWatch is the state of a context with watchers of its end.
type contextWatch struct {
	done   chan struct{}
	ended  contextEnd
	timer  *time.Timer // nil without a deadline
	afters map[*afterFunc]struct{}
}

// contextEnd is how a context has ended.
type contextEnd uint8

const (
	notEnded contextEnd = iota
	canceled
	expired
)

func (e contextEnd) err() error {
	switch e {
	case canceled:
		return context.Canceled
	case expired:
		return context.DeadlineExceeded
	}
	return nil
}

// endedUnwatched are the watches of all contexts that have ended without a watcher. They do not
// change.
var endedUnwatched = [...]*contextWatch{canceled: {done: wait.Over, ended: canceled}, expired: {done: wait.Over, ended: expired}}

// afterFunc is one registration of AfterFunc.
type afterFunc struct{ f func() }

// end records how the context has ended, and notifies all watchers. The caller holds the lock of
// the call.
func (w *contextWatch) end(how contextEnd) {
	w.ended = how
	close(w.done)
	if w.timer != nil {
		w.timer.Stop()
	}
	for a := range w.afters {
		go a.f() // as context.AfterFunc requires; ends with f
	}
	w.afters = nil
}

// A context holds the handler's call and the metadata for nested calls under one key, so that a
// call looks both up at once.

// inboundParentKey is the key of that value: a handler's context has its call, an inboundParent,
// and a context with metadata has a *contextMetadata.
type inboundParentKey struct{}

// contextMetadata is the value of [ContextWithMetadata] in a context.
type contextMetadata struct {
	parent   inboundParent // of the contexts below; nil: none is a handler's; fixed, as metadata
	metadata map[string]any
}

// carriedBy returns the call of the handler with the context ctx, or nil, and the metadata for
// calls made with ctx.
func carriedBy(ctx context.Context) (inboundParent, map[string]any) {
	switch v := ctx.Value(inboundParentKey{}).(type) {
	case *contextMetadata:
		return v.parent, v.metadata
	case inboundParent:
		return v, nil
	}
	return nil, nil
}

// Of returns the call of a handler with the context ctx, or with a context derived from it, or nil.
func Of(ctx context.Context) *Inbound {
	by, _ := carriedBy(ctx)
	c, _ := by.(*Inbound)
	return c
}

// MetadataIn returns the metadata for calls made with ctx.
func MetadataIn(ctx context.Context) map[string]any {
	_, m := carriedBy(ctx)
	return m
}

// WithMetadata returns a context that adds m to all calls made with it.
func WithMetadata(ctx context.Context, m map[string]any) context.Context {
	if len(m) == 0 {
		return ctx
	}
	by, under := carriedBy(ctx)
	return context.WithValue(ctx, inboundParentKey{}, &contextMetadata{by, MergeMetadata(under, m)})
}

// MergeMetadata returns the union of under and over; over takes precedence. The result may be one
// of the two.
func MergeMetadata(under, over map[string]any) map[string]any {
	switch {
	case len(over) == 0:
		return under
	case len(under) == 0:
		return over
	}
	both := maps.Clone(under)
	maps.Copy(both, over)
	return both
}
