package flowmodel

import "fmt"

// Counts are the numbers of events.
type Counts struct {
	Steps     int
	Calls     int
	Refused   int // calls, by either end
	Canceled  int // calls, by their callers
	Cut       int // Blocks in parts
	GivenUp   int // of these, Blocks that were given up
	Debts     int // and Blocks with a debt
	ToElastic int // of these, Blocks without a receiver, moved to elastic room
	ToRunning int // such Blocks, moved to the room of running calls
	Stalled   int // calls that ended because such a Block had no room
	Left      int // streams that were over before all Blocks were taken
	Dropped   int // Blocks that expired before they departed
	// directions that handed back credit
	HandedBack int
	Resized    int // changes of limits
	Away       int // answers given on the reader that had to wait
	Parked     int // answers of handlers that had to wait
	Deepest    int // nested calls
}

// Add adds the counts of another session.
func (c *Counts) Add(o Counts) {
	c.Steps += o.Steps
	c.Calls += o.Calls
	c.Refused += o.Refused
	c.Canceled += o.Canceled
	c.Cut += o.Cut
	c.GivenUp += o.GivenUp
	c.Debts += o.Debts
	c.ToElastic += o.ToElastic
	c.ToRunning += o.ToRunning
	c.Stalled += o.Stalled
	c.Left += o.Left
	c.Dropped += o.Dropped
	c.HandedBack += o.HandedBack
	c.Resized += o.Resized
	c.Away += o.Away
	c.Parked += o.Parked
	c.Deepest = max(c.Deepest, o.Deepest)
}

// Play plays the session of a seed to its end, and returns the first fault, or "". First, all
// applications but the sleepers have to finish. Then the sleepers are cancelled, and no resource
// may be held any more.
func Play(broken Broken, seed uint64) (counts Counts, fault string) {
	s := newSession(broken, seed)
	s.play()
	if s.fault != "" {
		fault = fmt.Sprintf("%s, after %d steps\n%s", s.fault, s.faultAt, s.story())
	}
	return s.counts, fault
}

func (s *session) play() {
	s.run()
	if n := s.waiting(); n > 0 {
		s.check(false, fmt.Sprintf("it stands still, and %d calls wait", n))
	}
	if s.fault != "" {
		return
	}
	s.stopped = true
	for _, c := range s.calls {
		if c.sleepy && c.parent == nil {
			c.wantGone = true
		}
	}
	s.run()
	if n := s.waiting(); n > 0 {
		s.check(false, fmt.Sprintf("it stands still after the sleepers were cancelled, and %d calls wait", n))
	}
	s.recount()
	if left := s.leftovers(); left != "" {
		s.check(false, "left over: "+left)
	}
}

// waiting counts the calls that have not ended and do not wait for a sleeper.
func (s *session) waiting() int {
	n := 0
	for _, c := range s.calls {
		if s.waits(c) {
			n++
		}
	}
	return n
}

func (s *session) waits(c *call) bool {
	switch {
	case c.ended():
		return false
	case s.stopped:
		return true
	case c.sleepy:
		return false
	}
	e := &s.ends[c.from] // its sleepers may hold every window
	return !(c.stream && c.caller == callerWindow && e.asleep.callers >= e.plan.Callers)
}
