package flowmodel

// handlerStep is a handler: its calls, and then its answer.
func (s *session) handlerStep(c *call) callResult {
	e := &s.ends[c.to()]
	switch {
	case c.cancelled:
		if c.kids > 0 {
			return blocked
		}
		s.endHandler(e, c)
		return gone
	case c.toNest > 0:
		if c.kids > 0 && !s.random.oneIn(2) {
			return blocked
		}
		c.toNest--
		c.kids++
		s.begin(s.nestedCall(c))
		return moved
	case c.kids > 0, c.asleep, c.stream && !c.down.sendOver() && !c.abrupt, c.stream && !c.up.recvOver() && !c.hasty:
		return blocked
	}
	s.endSending(e, &c.down)
	s.endHandler(e, c)
	s.answer(e, c)
	return gone
}

// answer sends the result of a handler that has returned.
func (s *session) answer(e *end, c *call) {
	m := message{kind: resultMessage, c: c, held: heldMessage + c.result, size: 32 + c.result}
	if s.broken.AnswersPass {
		s.count(e, m)
		return
	}
	c.parked = true
	e.parked++
	e.holding += m.held
	unpark := func() {
		c.parked = false
		e.parked--
		e.holding -= m.held
		s.put(e, m)
	}
	if e.outbound.reserve(c.priority, m.held, unpark) == nil {
		unpark()
		return
	}
	s.counts.Parked++
}

// stall ends a call on the side of its handler, which does not know that yet.
func (s *session) stall(e *end, c *call) {
	s.over(e, c, false)
	s.clear(e, c)
	s.count(e, message{kind: abortMessage, c: c, held: heldMessage, size: 32})
	s.cancelHandler(c)
}

// cancelHandler cancels the handler of a call that is over.
func (s *session) cancelHandler(c *call) {
	c.cancelled = true
	c.toNest = 0
	for _, kid := range s.calls {
		if kid.parent == c {
			kid.wantGone = true
		}
	}
}

// endHandler releases the resources of a call after the return of its handler.
func (s *session) endHandler(e *end, c *call) {
	c.callee = calleeEnded
	s.over(e, c, false)
	if c.lent {
		e.lent--
	} else {
		e.active--
	}
	e.holding -= c.params
	if c.nested {
		s.giveBack(e, c)
	}
}
