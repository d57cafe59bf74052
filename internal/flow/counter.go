package flow

import (
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/limits"
)

// The count is one word, so that messages and bytes change together. One atomic operation both
// counts a message and shows a sender whether the message fits. [limits.MaxMessages] and
// [limits.MaxBytes] are the largest counts.
const (
	messageBits = 26
	byteBits    = 64 - messageBits

	_ = -uint(limits.MaxMessages ^ (1<<messageBits - 1)) // compiles only if they are the same
)

// Counter counts the messages that one direction of a session holds, and derives its
// [limits.State]. It is safe for concurrent use. An operation that leaves the state as it is takes
// a few atomic instructions and no lock.
type Counter struct {
	held  atomic.Uint64 // messages << byteBits | bytes
	state atomic.Uint32 // a State; written under mu

	mu        sync.Mutex
	congested bool // guarded by mu, as reporting
	reporting bool // a goroutine is in report, and delivers all of pending

	relieved atomic.Uint64 // see Relieved

	mostMessages, mostBytes atomic.Uint64 // the largest counts so far

	marks atomic.Pointer[limits.Limits] // checked; the Limits it points to never change
	part  Part                          // the share of held that the Tally knows, in bytes

	changes *changes // guarded by mu; nil until a caller waits for a change, or a change is pending

	report func(limits.State) // fixed; called without a lock, by one goroutine at a time
}

// changes are the channels and reports for changes of the state. Most counters need none.
type changes struct {
	room    chan struct{}  // closed when the state falls below Soft; nil while no caller waits
	full    chan struct{}  // closed when the state reaches Soft; nil while no caller waits
	pending []limits.State // not yet reported
}

func (c *Counter) changesLocked() *changes {
	if c.changes == nil {
		c.changes = new(changes)
	}
	return c.changes
}

// NewCounter returns a Counter with the limits l, as returned by [Limits.Check]. Counters may share
// l, which must not change any more.
//
// The Counter calls report exactly once for every change of state, in order. report runs on the
// goroutine that caused the change, or on one that is still reporting an earlier change. It may be
// nil, and must not block.
func NewCounter(l *limits.Limits, report func(limits.State)) *Counter {
	c := &Counter{report: report}
	c.marks.Store(l)
	return c
}

// Add counts one message of the given bytes in any state, and returns the resulting state. If that
// is [limits.Hard], the caller has to end the session.
func (c *Counter) Add(bytes int) limits.State { return c.settle(c.held.Add(pack(1, bytes))) }

// Reserve counts one message of the given bytes and reports true. It counts nothing and reports
// false if the soft limit has been reached, or if the message would exceed the hard limit. A single
// message may exceed the soft limit.
func (c *Counter) Reserve(bytes int) bool {
	more := pack(1, bytes)
	for limits.State(c.state.Load()) < limits.Soft {
		old := c.held.Load()
		switch l := c.marks.Load(); {
		case atSoft(l, unpack(old)):
			c.settle(old)
			continue
		case overHard(l, unpack(old+more)):
			return false
		}
		if c.held.CompareAndSwap(old, old+more) {
			c.settle(old + more)
			return true
		}
	}
	return false
}

// Never reports whether a message of the given bytes exceeds the hard limit by itself, so that
// Reserve can never succeed.
func (c *Counter) Never(bytes int) bool {
	most := c.marks.Load().Hard.Bytes
	return most > 0 && bytes > most
}

// Remove subtracts messages of the given bytes in all from the count.
func (c *Counter) Remove(messages, bytes int) {
	if limits.State(c.state.Load()) >= limits.Soft {
		c.relieved.Add(1)
	}
	c.settle(c.held.Add(-pack(messages, bytes)))
}

// Grow adds bytes, which may be negative, to the size of a message that is counted already.
func (c *Counter) Grow(bytes int) { c.settle(c.held.Add(uint64(int64(bytes)))) }

// SetCongested records whether the transport is blocked.
func (c *Counter) SetCongested(congested bool) {
	c.mu.Lock()
	c.congested = congested
	c.updateLocked()
	c.mu.Unlock()
	c.deliver()
}

// SetLimits replaces the limits and returns the resulting state.
func (c *Counter) SetLimits(l limits.Limits) limits.State {
	c.mu.Lock()
	c.marks.Store(&l)
	c.updateLocked()
	c.mu.Unlock()
	c.deliver()
	return c.State()
}

// Limits returns the limits in force.
func (c *Counter) Limits() limits.Limits { return *c.marks.Load() }

// State returns the state of the direction.
func (c *Counter) State() limits.State { return limits.State(c.state.Load()) }

// Held returns the current count.
func (c *Counter) Held() limits.Amount { return unpack(c.held.Load()) }

// Relieved returns the number of removals that began at [limits.Soft] or beyond.
func (c *Counter) Relieved() uint64 { return c.relieved.Load() }

// Peak returns the highest counts of messages and of bytes so far.
func (c *Counter) Peak() limits.Amount {
	return limits.Amount{Messages: int(c.mostMessages.Load()), Bytes: int(c.mostBytes.Load())}
}

// Room returns a channel that is closed when the state falls below [limits.Soft], or nil when it is
// below already.
func (c *Counter) Room() <-chan struct{} {
	if c.State() < limits.Soft {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.State() < limits.Soft {
		return nil
	}
	w := c.changesLocked()
	if w.room == nil {
		w.room = make(chan struct{})
	}
	return w.room
}

// Full returns a channel that is closed when the state reaches [limits.Soft], or nil when it has
// already.
func (c *Counter) Full() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.State() >= limits.Soft {
		return nil
	}
	w := c.changesLocked()
	if w.full == nil {
		w.full = make(chan struct{})
	}
	return w.full
}

// settle updates the state after the count has become now, and returns the state.
func (c *Counter) settle(now uint64) limits.State {
	// A change of the count is followed by a look at the state, and a change of the state by a look
	// at the count (updateLocked). So at least one of two concurrent changes sees the other.
	held := unpack(now)
	raise(&c.mostMessages, held.Messages)
	raise(&c.mostBytes, held.Bytes)
	for n := held.Bytes; c.part.Tell(n); { // another goroutine may have stored a newer count before
		n = c.Held().Bytes
	}
	s := limits.State(c.state.Load())
	if nextState(c.marks.Load(), s, s == limits.Congested, held) == s {
		return s
	}
	c.mu.Lock()
	c.updateLocked()
	s = limits.State(c.state.Load())
	c.mu.Unlock()
	c.deliver()
	return s
}

// raise raises most to n if it is lower.
func raise(most *atomic.Uint64, n int) {
	for old := most.Load(); uint64(n) > old; old = most.Load() {
		if most.CompareAndSwap(old, uint64(n)) {
			return
		}
	}
}

// updateLocked derives the state from the count until the two agree.
func (c *Counter) updateLocked() {
	for {
		s := limits.State(c.state.Load())
		next := nextState(c.marks.Load(), s, c.congested, unpack(c.held.Load()))
		if next == s {
			return
		}
		c.state.Store(uint32(next))
		w := c.changesLocked()
		if c.report != nil {
			w.pending = append(w.pending, next)
		}
		if next < limits.Soft {
			wake(&w.room)
		} else {
			wake(&w.full)
		}
	}
}

// wake wakes all goroutines that wait for *ch.
func wake(ch *chan struct{}) {
	if *ch != nil {
		close(*ch)
		*ch = nil
	}
}

// deliver reports the pending changes, unless another goroutine does so already.
func (c *Counter) deliver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.changes
	if c.reporting || w == nil {
		return
	}
	c.reporting = true
	for len(w.pending) > 0 {
		s := w.pending[0]
		w.pending = w.pending[1:]
		c.reportUnlocked(s)
	}
	w.pending, c.reporting = nil, false
}

// reportUnlocked calls report without the lock. Code that report calls, such as a logger, may end
// the goroutine.
func (c *Counter) reportUnlocked(s limits.State) {
	c.mu.Unlock()
	returned := false
	defer func() {
		c.mu.Lock()
		if !returned {
			c.reporting = false
		}
	}()
	c.report(s)
	returned = true
}

// nextState returns the state that follows s for the count held. Hard is final.
func nextState(l *limits.Limits, s limits.State, congested bool, held limits.Amount) limits.State {
	switch {
	case s == limits.Hard || overHard(l, held):
		return limits.Hard
	case atSoft(l, held), s == limits.Soft && !isLow(l, held):
		return limits.Soft
	case congested:
		return limits.Congested
	}
	return limits.Ready
}

func atSoft(l *limits.Limits, a limits.Amount) bool {
	return l.Soft.Messages > 0 && a.Messages >= l.Soft.Messages || l.Soft.Bytes > 0 && a.Bytes >= l.Soft.Bytes
}

func overHard(l *limits.Limits, a limits.Amount) bool {
	return l.Hard.Messages > 0 && a.Messages > l.Hard.Messages || l.Hard.Bytes > 0 && a.Bytes > l.Hard.Bytes
}

// isLow reports whether a is at or below the low mark in every unit that has a soft limit.
func isLow(l *limits.Limits, a limits.Amount) bool {
	return (l.Soft.Messages == 0 || a.Messages <= l.Low.Messages) && (l.Soft.Bytes == 0 || a.Bytes <= l.Low.Bytes)
}

func pack(messages, bytes int) uint64 { return uint64(messages)<<byteBits + uint64(bytes) }

func unpack(held uint64) limits.Amount {
	return limits.Amount{Messages: int(held >> byteBits), Bytes: int(held & (1<<byteBits - 1))}
}
