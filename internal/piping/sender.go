package piping

import "math"

// sender is the direction of a pipe in which this side sends. The lock of its End guards it.
type sender struct {
	sent  uint64 // cost of the Blocks sent
	limit uint64 // up to which cost this side may send
	queue *queue // nil until a sender had to wait
}

// queue is where senders wait that have no room in the window.
type queue struct {
	credit signal // sent may go on
	asking asking // by the one of them whose Block is too large to get credit by itself
}

// waiters returns where senders wait.
func (s *sender) waiters() *queue {
	if s.queue == nil {
		s.queue = new(queue)
	}
	return s.queue
}

// fits reports whether a Block that costs n fits into the window.
func (s *sender) fits(n uint64) bool { return s.limit == Unlimited || s.sent+n <= s.limit }

// room returns the largest payload that the window admits, where a Block costs overhead besides.
func (s *sender) room(overhead uint64) int {
	if left := s.limit - s.sent; s.limit > s.sent && left > overhead {
		return int(min(left-overhead, math.MaxInt32))
	}
	return 0
}

// admit counts a Block that costs n as sent, if it may be sent now. asker says that it is the
// asker's. Others wait behind that one.
func (s *sender) admit(n uint64, asker bool) bool {
	switch {
	case s.queue != nil && s.queue.asking.question.hasAsker() && !asker:
		return false
	case s.fits(n):
	case asker && s.sent+n <= s.queue.asking.grant:
	default:
		return false
	}
	if asker {
		s.queue.asking.use()
	}
	s.sent += n
	if asker || s.sent < s.limit {
		s.pass() // others who wait may go on too
	}
	return true
}

// raise takes the peer's grant, and reports whether it is a larger one.
func (s *sender) raise(total uint64) bool {
	if total <= s.limit {
		return false
	}
	s.limit = total
	if s.hasAsked(total) {
		s.queue.asking.credit()
	}
	return true
}

// hasAsked reports whether an Ask has departed that total answers.
func (s *sender) hasAsked(total uint64) bool {
	return s.queue != nil && s.queue.asking.question.departed() && total >= s.queue.asking.asked
}

// hasAskedFor reports whether an Ask for just that total has departed and is not answered.
func (s *sender) hasAskedFor(total uint64) bool {
	return s.hasAsked(total) && total == s.queue.asking.asked
}

// undo takes back what admit counted, for a Block that was not sent. It reports whether a place for
// an Ask has to be taken.
func (s *sender) undo(n uint64) bool {
	s.sent -= n
	return s.queue != nil && s.queue.asking.drop()
}

// wake wakes the sender that may go on next.
func (s *sender) wake() {
	if s.queue != nil && s.queue.asking.question.hasAsker() {
		s.queue.asking.answer.set()
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

// end wakes everybody, for ever.
func (s *sender) end() {
	if s.queue != nil {
		s.queue.credit.end()
		s.queue.asking.answer.end()
	}
}
