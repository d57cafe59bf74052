package call

import (
	"context"
	"maps"
	"time"

	"github.com/asterisque-go/asterisque/internal/sharing"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// The context of a handler is its call: see served.

// Deadline implements context.Context.
func (c *Inbound) Deadline() (at time.Time, ok bool) {
	if c.expires == 0 {
		return at, false
	}
	return c.transport.x.out.common.TimeAt(c.expires), true
}

// Value implements context.Context.
func (c *Inbound) Value(key any) any {
	switch key {
	case inboundParentKey{}:
		return c
	case sharing.Key{}:
		return sharing.Basis{Node: c.transport.x.out.common, Handler: c.Handler, Codec: c.transport.x.Values.Name()}
	}
	return nil
}

// Err implements context.Context.
func (c *Inbound) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endedLocked() == notEnded && c.expires > 0 && c.transport.x.out.common.Now() >= c.expires {
		c.endLocked(expired)
	}
	return c.endedLocked().err()
}

// Done implements context.Context.
func (c *Inbound) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watchLocked().done
}

func (c *Inbound) endedLocked() contextEnd {
	if c.watch == nil {
		return notEnded
	}
	return c.watch.ended
}

func (c *Inbound) watchLocked() *contextWatch {
	if c.watch == nil {
		c.watch = &contextWatch{done: make(chan struct{})}
		if c.expires > 0 {
			c.watch.timer = time.AfterFunc(c.expires-c.transport.x.out.common.Now(), func() { c.end(expired) })
		}
	}
	return c.watch
}

// AfterFunc calls f in a goroutine of its own when c ends, unless stop is called before. Because of
// this method, contexts derived from c need no goroutine that watches c.
func (c *Inbound) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endedLocked() != notEnded {
		go f() // as in end
		return func() bool { return false }
	}
	key, w := &afterFunc{f}, c.watchLocked()
	if w.afters == nil {
		w.afters = make(map[*afterFunc]struct{})
	}
	w.afters[key] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, ok := w.afters[key]
		delete(w.afters, key)
		return ok
	}
}

func (c *Inbound) end(how contextEnd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(how)
}

func (c *Inbound) endLocked(how contextEnd) {
	switch w := c.watch; {
	case w == nil:
		c.watch = endedUnwatched[how]
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
