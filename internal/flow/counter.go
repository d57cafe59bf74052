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
// [limits.State]. At the soft limit messages wait by priority to be counted. It is safe for
// concurrent use. While no message waits, an operation that leaves the state as it is takes a few
// atomic instructions and no lock.
type Counter struct {
	held  atomic.Uint64 // messages << byteBits | bytes
	state atomic.Uint32 // a State; written under mu

	// A waiter sets queued before it reads the count, and a goroutine that lowers the count reads
	// queued afterwards: one of the two sees the other.
	queued atomic.Bool // a message waits; written with mu held
	share  float32     // of the bytes of waiting messages, for lower priorities; fixed

	mu         sync.Mutex
	congested  bool // guarded by mu, as ended and delivering
	ended      bool // no message waits any more, whatever is counted
	delivering bool // a goroutine is in deliver, and delivers all events

	relieved atomic.Uint64 // see Relieved

	mostMessages, mostBytes atomic.Uint64 // the largest counts so far

	marks atomic.Pointer[limits.Limits] // checked; the Limits it points to never change
	part  Part                          // the share of held that the Tally knows, in bytes

	events *events // guarded by mu; nil until a caller waits, or the state changes

	report func(limits.State) // fixed; called without a lock, by one goroutine at a time
}

// events are the changes and grants that a Counter has to deliver, and its waiters. Most counters
// need none.
type events struct {
	room    chan struct{}  // closed when the state falls below Soft; nil while no caller waits
	full    chan struct{}  // closed when the state reaches Soft; nil while no caller waits
	states  []limits.State // not yet reported
	waiting Queue          // messages that are not counted yet
	granted []*Waiter      // counted, and not yet told so
}

func (c *Counter) eventsLocked() *events {
	if c.events == nil {
		c.events = &events{waiting: Queue{share: float64(c.share)}}
	}
	return c.events
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
func (c *Counter) Add(bytes int) limits.State { return c.settle(c.held.Add(pack(1, bytes)), false) }

// Never reports whether a message of the given bytes exceeds the hard limit by itself, so that
// it will never be counted.
func (c *Counter) Never(bytes int) bool {
	most := c.marks.Load().Hard.Bytes
	return most > 0 && bytes > most
}

// Remove subtracts messages of the given bytes in all from the count.
func (c *Counter) Remove(messages, bytes int) {
	if limits.State(c.state.Load()) >= limits.Soft {
		c.relieved.Add(1)
	}
	c.settle(c.held.Add(-pack(messages, bytes)), false)
	c.admit()
}

// Grow adds bytes, which may be negative, to the size of a message that is counted already.
func (c *Counter) Grow(bytes int) {
	c.settle(c.held.Add(uint64(int64(bytes))), false)
	c.admit()
}

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
	c.admit()
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
	e := c.eventsLocked()
	if e.room == nil {
		e.room = make(chan struct{})
	}
	return e.room
}

// Full returns a channel that is closed when the state reaches [limits.Soft], or nil when it has
// already.
func (c *Counter) Full() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.State() >= limits.Soft {
		return nil
	}
	e := c.eventsLocked()
	if e.full == nil {
		e.full = make(chan struct{})
	}
	return e.full
}

// settle updates the state after the count has become now, and returns the state. locked reports
// that the caller holds the lock, and delivers afterwards.
func (c *Counter) settle(now uint64, locked bool) limits.State {
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
	if locked {
		c.updateLocked()
		return limits.State(c.state.Load())
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
		e := c.eventsLocked()
		if c.report != nil {
			e.states = append(e.states, next)
		}
		if next < limits.Soft {
			wake(&e.room)
		} else {
			wake(&e.full)
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

// deliver reports the pending changes and grants, unless another goroutine does so already.
func (c *Counter) deliver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.events
	if c.delivering || e == nil {
		return
	}
	c.delivering = true
	defer func() {
		c.delivering = false
		// code that is called, such as a logger, may have ended the goroutine
		if len(e.states)+len(e.granted) > 0 {
			c.unlocked(c.deliver)
		}
	}()
	for len(e.states)+len(e.granted) > 0 {
		if len(e.states) > 0 {
			s := e.states[0]
			e.states = e.states[1:]
			c.unlocked(func() { c.report(s) })
		} else {
			w := e.granted[0]
			e.granted = e.granted[1:]
			c.unlocked(func() { w.Granted(!w.never) })
		}
	}
	e.states, e.granted = nil, nil
}

// unlocked calls f without the lock.
func (c *Counter) unlocked(f func()) {
	c.mu.Unlock()
	defer c.mu.Lock()
	f()
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
