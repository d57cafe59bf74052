package flow

import "github.com/asterisque-go/asterisque/limits"

// Share gives waiting messages of lower priorities this share of the bytes. It is called before the
// first message.
func (c *Counter) Share(share float64) { c.share = float32(share) }

// TryAcquire counts one message of the given bytes and returns true. It counts nothing and returns
// false if the soft limit has been reached, if the message would exceed the hard limit, or if
// another message waits. A single message may exceed the soft limit.
func (c *Counter) TryAcquire(bytes int) bool { return !c.queued.Load() && c.take(bytes, false) }

// Queued reports whether a message waits to be counted.
func (c *Counter) Queued() bool { return c.queued.Load() }

// take counts one message if there is room. locked reports that the caller holds the lock, and
// delivers afterwards.
func (c *Counter) take(bytes int, locked bool) bool {
	more := pack(1, bytes)
	for limits.State(c.state.Load()) < limits.Soft {
		old := c.held.Load()
		switch l := c.marks.Load(); {
		case atSoft(l, unpack(old)):
			c.settle(old, locked)
			continue
		case overHard(l, unpack(old+more)):
			return false
		}
		if c.held.CompareAndSwap(old, old+more) {
			c.settle(old+more, locked)
			return true
		}
	}
	return false
}

// Acquire counts a message of the bytes of w and returns true, or queues w until it is counted. No
// message overtakes an earlier one of the same priority or a higher one. A message that exceeds the
// hard limit by itself, which may be lowered meanwhile, is refused: see Never.
func (c *Counter) Acquire(w *Waiter) bool {
	if c.TryAcquire(w.Bytes) {
		return true
	}
	ok := c.acquireOrQueue(w)
	c.deliver()
	return ok
}

func (c *Counter) acquireOrQueue(w *Waiter) (ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued.Store(true)
	q := &c.eventsLocked().waiting
	if ok = q.passes(w.Priority) && !c.Never(w.Bytes) && c.admitLocked(w); !ok {
		q.push(w)
		c.grantLocked()
	}
	c.queued.Store(q.len > 0)
	return ok
}

// admitLocked counts w if there is room, or no message waits any more. It reports whether the wait
// of w is over.
func (c *Counter) admitLocked(w *Waiter) bool {
	switch {
	case c.ended:
		c.settle(c.held.Add(pack(1, w.Bytes)), true)
		return true
	case c.Never(w.Bytes):
		w.never = true
		return true
	}
	return c.take(w.Bytes, true)
}

// admit counts waiting messages, as far as the limits allow.
func (c *Counter) admit() {
	if !c.queued.Load() {
		return
	}
	c.mu.Lock()
	c.grantLocked()
	c.mu.Unlock()
	c.deliver()
}

func (c *Counter) grantLocked() {
	e := c.events
	if e == nil {
		return // no message has ever waited
	}
	e.granted = e.waiting.grant(e.granted, c.admitLocked)
	c.queued.Store(e.waiting.len > 0)
}

// Leave ends the wait of w. A message that was counted meanwhile is subtracted.
func (c *Counter) Leave(w *Waiter) {
	c.mu.Lock()
	waited := c.eventsLocked().waiting.remove(w)
	if waited { // it may have blocked other messages
		c.grantLocked()
	}
	c.mu.Unlock()
	c.deliver()
	if !waited && !w.never {
		c.Remove(1, w.Bytes)
	}
}

// End counts all waiting messages, and later ones without a wait, whatever is counted: none of them
// is sent any more.
func (c *Counter) End() {
	c.mu.Lock()
	c.ended = true
	c.grantLocked()
	c.mu.Unlock()
	c.deliver()
}
