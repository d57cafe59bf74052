package natswire

import (
	"fmt"
	"sync"
	"time"
)

// credit counts the bytes that may be sent before the peer has taken those sent already.
type credit struct {
	mu       sync.Mutex
	changed  sync.Cond // uses mu; signals each change of the fields below
	limit    uint64    // guarded by mu, as all below: the peer's window
	sent     uint64    // total cost of sent messages
	taken    uint64    // the part of it that the peer has taken
	err      error     // the error of further sends
	deadline condDeadline
}

// spend waits until a message of n bytes may be sent.
func (c *credit) spend(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.err != nil:
			return c.err
		case c.deadline.passed:
			return c.deadline.errLocked()
		case c.sent-c.taken+cost(n) <= c.limit:
			c.sent += cost(n)
			return nil
		}
		c.changed.Wait()
	}
}

// returned is called with the total that the peer reports as taken.
func (c *credit) returned(taken uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case taken == c.taken:
		return nil
	case taken < c.taken, taken > c.sent:
		return fmt.Errorf("%w: the peer says that it has taken %d bytes, after %d of %d", ErrForeign, taken, c.taken, c.sent)
	}
	c.taken = taken
	c.changed.Broadcast()
	return nil
}

// open sets the peer's window.
func (c *credit) open(limit uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = uint64(limit)
	c.changed.Broadcast()
}

// end makes further sends fail with err. Only the first error counts.
func (c *credit) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.deadline.stopLocked()
	c.changed.Broadcast()
}

// setDeadline sets the deadline of spend.
func (c *credit) setDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline.setLocked(t, &c.changed)
}
