package piping

import "math"

// sender is the direction of a pipe in which this side sends. The lock of its End guards it.
type sender struct {
	sent  uint64     // cost of the sent Blocks
	limit uint64     // cost up to which this side may send
	queue *sendQueue // nil until a sender had to wait
}

// sendQueue is the place where senders wait for room in the window.
type sendQueue struct {
	credit  signal // set when a sender may continue
	divided divided
}

// waiters returns the queue of s, creating it if necessary.
func (s *sender) waiters() *sendQueue {
	if s.queue == nil {
		s.queue = new(sendQueue)
	}
	return s.queue
}

// fits reports whether a Block of cost n fits into the window.
func (s *sender) fits(n uint64) bool { return s.limit == Unlimited || s.sent+n <= s.limit }

// room returns the largest payload that fits into the window. A Block costs overhead besides its
// payload.
func (s *sender) room(overhead uint64) int {
	if left := s.limit - s.sent; s.limit > s.sent && left > overhead {
		return int(min(left-overhead, math.MaxInt32))
	}
	return 0
}

// admit counts a Block of cost n as sent, if the Block may be sent now. Senders wait behind a
// divided Block.
func (s *sender) admit(n uint64) bool {
	if s.isDivided() || !s.fits(n) {
		return false
	}
	s.sent += n
	if s.sent < s.limit {
		s.pass() // a further sender may continue, too
	}
	return true
}

// isDivided reports whether there is a divided Block.
func (s *sender) isDivided() bool { return s.queue != nil && s.queue.divided.present }

// raise processes the peer's Credit, and reports whether it raises the limit.
func (s *sender) raise(total uint64) bool {
	if total <= s.limit {
		return false
	}
	s.limit = total
	return true
}

// wake wakes the sender that may continue next.
func (s *sender) wake() {
	if s.isDivided() {
		s.queue.divided.room.set()
	} else {
		s.pass()
	}
}

// pass wakes a sender of a whole Block.
func (s *sender) pass() {
	if s.queue != nil {
		s.queue.credit.set()
	}
}

// end wakes all senders, for ever.
func (s *sender) end() {
	if s.queue != nil {
		s.queue.credit.end()
		s.queue.divided.room.end()
	}
}
