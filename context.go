package asterisque

import (
	"context"
	"time"
)

// The context of a handler is its call: see incoming.

// watch is what a context needs to tell others of its end.
type watch struct {
	done   chan struct{}
	timer  *time.Timer // nil without a deadline
	afters map[*after]struct{}
}

// after is one registration of AfterFunc.
type after struct{ f func() }

// Deadline implements context.Context.
func (c *incoming) Deadline() (at time.Time, ok bool) {
	if c.deadline == nil {
		return at, false
	}
	return *c.deadline, true
}

// Value implements context.Context.
func (c *incoming) Value(key any) any {
	if key == (incomingKey{}) {
		return c
	}
	return nil
}

// Err implements context.Context.
func (c *incoming) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.deadline != nil && !time.Now().Before(*c.deadline) {
		c.endLocked(context.DeadlineExceeded)
	}
	return c.err
}

// Done implements context.Context.
func (c *incoming) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watchLocked().done
}

func (c *incoming) watchLocked() *watch {
	if c.watch != nil {
		return c.watch
	}
	c.watch = &watch{done: make(chan struct{})}
	if c.err != nil {
		close(c.watch.done)
	} else if c.deadline != nil {
		c.watch.timer = time.AfterFunc(time.Until(*c.deadline), func() { c.end(context.DeadlineExceeded) })
	}
	return c.watch
}

// AfterFunc calls f in a goroutine of its own when c ends, unless stop is called before. With this method, contexts derived from c need no goroutine to watch it.
func (c *incoming) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	key, w := &after{f}, c.watchLocked()
	if w.afters == nil {
		w.afters = make(map[*after]struct{})
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

func (c *incoming) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(err)
}

func (c *incoming) endLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	w := c.watch
	if w == nil {
		return
	}
	close(w.done)
	if w.timer != nil {
		w.timer.Stop()
	}
	for a := range w.afters {
		go a.f() // by the contract of context.AfterFunc; f ends it
	}
	w.afters = nil
}

// incomingKey is the key under which the context of a handler holds its call.
type incomingKey struct{}

// SessionOf returns the session that a handler's context belongs to, through which the handler can call its caller back, or nil for other contexts. Contexts derived from
// the handler's are as good.
func SessionOf(ctx context.Context) *Session {
	if c, ok := ctx.Value(incomingKey{}).(*incoming); ok {
		return c.s
	}
	return nil
}
