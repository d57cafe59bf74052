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
	credit signal // set when a sender may continue
	asking asking // of the sender whose Block is too large to get credit without asking
}

// asks returns the Ask of s, which must have a queue.
func (s *sender) asks() *asking { return &s.queue.asking }

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

// admit counts a Block of cost n as sent, if it may be sent now. asker reports that the Block is
// that of the asker. Other senders wait behind the asker.
func (s *sender) admit(n uint64, asker bool) bool {
	switch {
	case s.queue != nil && s.asks().question.hasAsker() && !asker:
		return false
	case s.fits(n):
	case asker && s.sent+n <= s.asks().grant:
	default:
		return false
	}
	if asker {
		s.asks().use()
	}
	s.sent += n
	if asker || s.sent < s.limit {
		s.pass() // a further sender may continue, too
	}
	return true
}

// raise processes the peer's Credit, and reports whether it raises the limit.
func (s *sender) raise(total uint64) bool {
	if total <= s.limit {
		return false
	}
	s.limit = total
	if s.hasAsked(total) {
		s.asks().credit()
	}
	return true
}

// hasAsked reports whether an Ask has departed that a grant of total answers.
func (s *sender) hasAsked(total uint64) bool {
	return s.queue != nil && s.asks().question.departed() && total >= s.asks().asked
}

// hasAskedFor reports whether an Ask for exactly that total has departed and is not answered yet.
func (s *sender) hasAskedFor(total uint64) bool {
	return s.hasAsked(total) && total == s.asks().asked
}

// undo reverts admit, for a Block that was not sent. It reports whether a place for an Ask has to
// be reserved.
func (s *sender) undo(n uint64) bool {
	s.sent -= n
	return s.queue != nil && s.asks().drop()
}

// wake wakes the sender that may continue next.
func (s *sender) wake() {
	if s.queue != nil && s.asks().question.hasAsker() {
		s.asks().answer.set()
	} else {
		s.pass()
	}
}

// pass wakes a sender that does not ask.
func (s *sender) pass() {
	if s.queue != nil {
		s.queue.credit.set()
	}
}

// end wakes all senders, for ever.
func (s *sender) end() {
	if s.queue != nil {
		s.queue.credit.end()
		s.asks().answer.end()
	}
}
