package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
)

// callerStep is the calling application, from the start to the end of the call.
func (s *session) callerStep(c *call, timers bool) callResult {
	e := &s.ends[c.from]
	if c.caller == callerEnded {
		return gone
	}
	if c.caller < callerReads && (c.wantGone || timers && c.cancelAt != 0 && s.counts.Steps >= c.cancelAt) {
		s.cancel(e, c)
		return moved
	}
	switch c.caller {
	case callerWindow:
		return s.windowStep(e, c)
	case callerCredit:
		return s.creditStep(e, c)
	case callerOutbound:
		return s.openStep(e, c)
	case callerReads:
		if c.wantGone || c.down.inbox.len() == 0 || timers && !c.sleepy && s.random.oneIn(64) {
			s.dropLeft(e, &c.down)
			s.endCaller(e, c)
			return gone
		}
	}
	return blocked
}

// windowStep waits for room for the Blocks of the callee. A nested call takes room of its own
// share, or is rejected.
func (s *session) windowStep(e *end, c *call) callResult {
	switch {
	case c.nested:
		if !e.nesting.enter(c, &s.ends[c.to()].plan, &e.plan) {
			s.counts.Refused++
			s.endCaller(e, c)
			return moved
		}
		c.down.hold.Base = uint32(c.within)
		c.caller = callerOutbound
		return moved
	case !c.stream, s.broken.QueueFirst:
	case !s.hasWindow(e, c):
		return blocked
	}
	e.credit.line.push(c)
	c.caller = callerCredit
	return moved
}

// hasWindow reports whether c has its window, for which c waits in the line of the room.
func (s *session) hasWindow(e *end, c *call) bool {
	if !c.claimed {
		c.claimed = true
		c.claim = flow.Waiter{Priority: c.priority, Granted: func(bool) { c.turn = true }}
		c.turn = e.room.Acquire(flow.Made, &c.claim)
	}
	if !c.turn {
		return false
	}
	e.room.Opened(&c.claim, &c.down.hold)
	c.opened = true
	return true
}

// leaveWindow ends the wait of a call for its window.
func (s *session) leaveWindow(e *end, c *call) {
	if !c.claimed || c.opened {
		return
	}
	waited, granted := e.room.Withdraw(&c.claim)
	e.grant(granted)
	if !waited { // it has been granted
		e.room.Opened(&c.claim, &c.down.hold)
		c.opened = true
	}
}

// creditStep waits for the credit for Opens, in turn.
func (s *session) creditStep(e *end, c *call) callResult {
	if e.credit.line.first() != c {
		return blocked
	}
	if s.broken.QueueFirst && c.stream && !c.opened && !s.hasWindow(e, c) {
		return blocked
	}
	if !e.credit.take(c.priority, c.cost) {
		return blocked
	}
	e.credit.line.remove(c)
	c.caller = callerOutbound
	return moved
}

// openStep waits at the outbound soft limit.
func (s *session) openStep(e *end, c *call) callResult {
	m := message{kind: openMessage, c: c, held: heldMessage + c.params, size: 32 + c.params}
	if c.leaving == nil {
		if c.leaving = e.outbound.reserve(c.priority, m.held, nil); c.leaving != nil {
			return moved
		}
	} else if !c.leaving.ready {
		return blocked
	}
	c.leaving = nil
	if c.stream {
		c.initial = e.extra.take(s.ends[c.to()].plan.Window)
	}
	s.put(e, m)
	c.caller = callerSent
	if c.stream {
		c.up.limit = s.ends[c.to()].plan.Window + c.initial
		c.down.granted = int(c.down.hold.Bytes())
		c.down.limit = c.down.granted // announced by the Open
		s.add(actor{kind: actSend, d: &c.up})
		s.add(actor{kind: actRecv, d: &c.down})
	}
	return moved
}

// cancel cancels a call.
func (s *session) cancel(e *end, c *call) {
	s.counts.Canceled++
	switch c.caller {
	case callerCredit:
		e.credit.line.remove(c)
	case callerOutbound:
		if c.leaving != nil {
			e.outbound.abandon(c.leaving)
		}
		s.unsent(e, c)
	case callerSent:
		s.abort(e, c)
	}
	s.leaveWindow(e, c)
	s.endCaller(e, c)
}

// unsent releases the credit of an Open that is never sent.
func (s *session) unsent(e *end, c *call) {
	if !c.nested {
		e.credit.used -= c.cost
	}
}

// abort ends a call that was sent.
func (s *session) abort(e *end, c *call) {
	s.over(e, c, false)
	unsent := s.clear(e, c)
	if unsent {
		s.unsent(e, c)
		e.extra.taken -= c.initial
	}
	if c.departed {
		s.count(e, message{kind: abortMessage, c: c, held: heldMessage, size: 32})
	}
	c.closed[e.index] = true
}

// onResult processes the answer, which is delivered on arrival.
func (s *session) onResult(e *end, c *call) {
	if c.caller != callerSent {
		return
	}
	s.over(e, c, true)
	s.finish(e, c)
	e.nesting.leave(c)
	c.caller = callerReads
}

// onRefusal processes an answer without a result.
func (s *session) onRefusal(e *end, c *call) {
	if c.caller != callerSent {
		return
	}
	if c.nature == ordinary {
		s.counts.Refused++
	}
	s.over(e, c, false)
	s.finish(e, c)
	s.endCaller(e, c)
}

// over ends the pipe at one end. If keep is set, Blocks in the inbox are left for the application.
func (s *session) over(e *end, c *call, keep bool) {
	if c.over[e.index] {
		return
	}
	c.over[e.index] = true
	if !c.stream {
		return
	}
	in := &c.down
	if c.to() == e.index {
		in = &c.up
	}
	if keep {
		s.leaveLeft(e, in)
	} else {
		s.discard(e, in)
		s.release(e, in)
	}
}

// endCaller ends a call on the calling side.
func (s *session) endCaller(e *end, c *call) {
	s.over(e, c, false)
	e.nesting.leave(c)
	c.caller = callerEnded
	if c.parent != nil {
		c.parent.kids--
	}
}
