package flowmodel

import "math"

// session is two ends, two wires, and all actors.
type session struct {
	broken Broken
	random random
	scene
	ends   [2]end
	wires  [2]wire // by the writing end
	actors []actor
	calls  []*call

	stopped bool // the sleepers have been cancelled

	counts  Counts
	fault   string // the first fault
	faultAt int    // the number of steps before it
}

// actor can take steps.
type actor struct {
	kind  actKind
	end   uint8
	speed uint8 // a power of 2: it tries a step once in this number of times
	c     *call
	d     *direction
	t     *thread
}

type actKind uint8

const (
	actWrite actKind = iota
	actRead
	actWork
	actGrant
	actThread
	actCaller
	actHandler
	actSend
	actRecv
	actKinds
)

type callResult uint8

const (
	blocked callResult = iota
	moved
	gone // it never moves again
)

// thread is an application that makes one call after another.
type thread struct {
	left int
	call *call
}

// begin starts a call.
func (s *session) begin(c *call) {
	s.calls = append(s.calls, c)
	s.add(actor{kind: actCaller, c: c})
}

func (s *session) threadStep(a *actor) callResult {
	t := a.t
	if t.call != nil && t.call.caller != callerEnded {
		return blocked
	}
	if t.left == 0 {
		return gone
	}
	t.left--
	t.call = s.rootCall(int(a.end))
	s.begin(t.call)
	return moved
}

// try has an actor try its next step. Timers are contexts that end: they may end at any time, but
// no progress may depend on them.
func (s *session) try(a *actor, timers bool) callResult {
	switch a.kind {
	case actWrite:
		return s.writeStep(&s.ends[a.end])
	case actRead:
		return s.readStep(&s.ends[a.end])
	case actWork:
		return s.workStep(&s.ends[a.end])
	case actGrant:
		return s.grantStep(&s.ends[a.end])
	case actThread:
		return s.threadStep(a)
	case actCaller:
		return s.callerStep(a.c, timers)
	case actHandler:
		return s.handlerStep(a.c)
	case actSend:
		return s.sendStep(a.d, timers)
	default:
		return s.recvStep(a.d, timers)
	}
}

// add adds an actor, with its speed.
func (s *session) add(a actor) {
	switch a.kind {
	case actSend:
		a.speed = s.speeds[a.d.from][actSend]
	case actRecv:
		if a.speed = 1; a.d.slow {
			a.speed = 16
		}
	case actHandler:
		a.speed = s.speeds[a.c.to()][actHandler]
	case actCaller:
		a.speed = 1
	default:
		a.speed = s.speeds[a.end][a.kind]
	}
	s.actors = append(s.actors, a)
}

// run takes random steps until no actor can move.
func (s *session) run() {
	for misses := 0; s.fault == ""; {
		z := s.random.next()
		i := int(z & math.MaxUint32 * uint64(len(s.actors)) >> 32)
		feels := z>>32&uint64(s.actors[i].speed-1) == 0
		if feels && s.step(i, true) {
			misses = 0
			continue
		}
		if misses++; misses > 16+len(s.actors)*s.slowness/8 {
			misses = 0
			if !s.stepAny() {
				return
			}
		}
	}
}

// stepAny takes a step if there is one, without the help of timers.
func (s *session) stepAny() bool {
	n := len(s.actors)
	from := s.random.below(n)
	for k := range n {
		if s.step((from+k)%n, false) {
			return true
		}
		if len(s.actors) != n {
			return true
		}
	}
	return false
}

// step reports whether actor i could take a step.
func (s *session) step(i int, timers bool) bool {
	a := s.actors[i]
	switch s.try(&a, timers) {
	case blocked:
		return false
	case gone:
		last := len(s.actors) - 1
		s.actors[i] = s.actors[last]
		s.actors = s.actors[:last]
	}
	s.counts.Steps++
	if s.resizeEvery > 0 && s.random.oneIn(s.resizeEvery) {
		s.resize(&s.ends[s.random.below(2)])
	}
	s.invariants(&a)
	return true
}

// resize changes the inbound soft limit of an end, down to a tenth of what it announced.
func (s *session) resize(e *end) {
	s.counts.Resized++
	p := &e.plan
	e.grant(e.room.Resize(s.random.within(p.Room/10, p.Room)))
}
