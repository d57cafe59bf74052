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

// ending says how a context has ended.
type ending uint8

const (
	running ending = iota
	canceled
	expired
)

func (e ending) err() error {
	switch e {
	case canceled:
		return context.Canceled
	case expired:
		return context.DeadlineExceeded
	}
	return nil
}

// after is one registration of AfterFunc.
type after struct{ f func() }

// Deadline implements context.Context.
func (c *incoming) Deadline() (at time.Time, ok bool) {
	if c.expires == 0 {
		return at, false
	}
	return c.s.shared.timeAt(c.expires), true
}

// Value implements context.Context.
func (c *incoming) Value(key any) any {
	if key == (handledKey{}) {
		return c
	}
	return nil
}

// Err implements context.Context.
func (c *incoming) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == running && c.expires > 0 && c.s.shared.now() >= c.expires {
		c.endLocked(expired)
	}
	return c.ended.err()
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
	if c.ended != running {
		close(c.watch.done)
	} else if c.expires > 0 {
		c.watch.timer = time.AfterFunc(c.expires-c.s.shared.now(), func() { c.end(expired) })
	}
	return c.watch
}

// AfterFunc calls f in a goroutine of its own when c ends, unless stop is called before. With this
// method, contexts derived from c need no goroutine to watch it.
func (c *incoming) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != running {
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

func (c *incoming) end(how ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(how)
}

func (c *incoming) endLocked(how ending) {
	if c.ended != running {
		return
	}
	c.ended = how
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

// SessionOf returns the session that a handler's context belongs to, through which the handler can
// call its caller back, or nil for other contexts. Contexts derived from the handler's are as good.
func SessionOf(ctx context.Context) *Session {
	if c, ok := ctx.Value(handledKey{}).(*incoming); ok {
		return c.s
	}
	return nil
}
