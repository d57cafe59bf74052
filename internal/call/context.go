package call

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/sharing"
)

// The context of a handler is its call: see served.

// Deadline implements context.Context.
func (c *Inbound) Deadline() (at time.Time, ok bool) {
	if c.expires == 0 {
		return at, false
	}
	return c.x.common.TimeAt(c.expires), true
}

// Value implements context.Context.
func (c *Inbound) Value(key any) any {
	switch key {
	case inboundParentKey{}:
		return c
	case sharing.Key{}:
		return sharing.Basis{Node: c.x.common, Handler: c.Handler, Codec: c.x.Values.Name()}
	}
	return nil
}

// Err implements context.Context.
func (c *Inbound) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endedLocked() == notEnded && c.expires > 0 && c.x.common.Now() >= c.expires {
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
			c.watch.timer = time.AfterFunc(c.expires-c.x.common.Now(), func() { c.end(expired) })
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
