package flowmodel

import "github.com/asterisque-go/asterisque/internal/flow"

// dispatcher runs the calls of the peer.
type dispatcher struct {
	opens      flow.Opens
	mostQueued int // limit of waiting calls; 0: none

	ready   messageLine // calls that wait for a worker
	large   messageLine // calls that were next in turn without room for their parameters
	waiting int         // calls that no worker has taken yet
	active  int         // workers that run handlers
	lent    int         // lent workers
	parked  int         // answers of handlers that wait to be counted
	away    int         // answers of the reader that wait to be counted
	holding int         // bytes held by running calls, and by answers that wait to be counted
	nested  int         // nested calls here
	inner   int         // their cost

	awayCost int // cost of the Opens whose answers are away
}

// smallParams is the size up to which the parameters of a call may use the last eighth of the room.
const smallParams = 4 << 10

// onOpen processes an Open that has arrived.
func (s *session) onOpen(e *end, c *call) {
	arrived := e.arrive(c)
	s.check(arrived || c.nested, "an Open has arrived that was not promised room")
	if c.initial > 0 {
		ok, granted := e.room.TakeExtra(&c.up.hold, uint64(c.initial), e)
		s.check(ok, "an Open takes more extra credit than was granted")
		e.grant(granted)
	}
	switch {
	case !arrived: // functions of cancelled calls may still run
		s.answerAway(e, c, false)
	case c.nature != ordinary, c.nested && c.parent.over[e.index]:
		s.answerAway(e, c, true)
	case e.mostQueued > 0 && e.waiting >= e.mostQueued && !c.nested:
		s.giveBack(e, c)
		s.answerAway(e, c, false)
	default:
		s.queue(e, c)
	}
}

// arrive counts an Open.
func (e *end) arrive(c *call) bool {
	if !c.nested {
		return e.opens.Arrive(uint64(c.cost))
	}
	if e.nested >= e.plan.NestedCalls || e.inner+c.cost > e.plan.Nested {
		return false
	}
	e.nested++
	e.inner += c.cost
	return true
}

// giveBack releases the room of an Open that does not need it any more.
func (s *session) giveBack(e *end, c *call) {
	if c.nested {
		e.nested--
		e.inner -= c.cost
	} else {
		e.opens.Return(uint64(c.cost))
		s.grantOpens(e)
	}
}

// grantOpens grants credit for Opens, unless the grant is held back. It is called whenever there is
// more credit, or no Open waits any more that would bring more.
func (s *session) grantOpens(e *end) {
	idle := e.waiting+e.away == 0 && !s.broken.HalfCredit
	if total := e.opens.Grant(idle); total > 0 {
		e.outbox.opens = int(total)
	}
}

func heldOpen(c *call) int { return flow.Held(c.params) }

// queue queues a call for a worker, or lends a worker to it.
func (s *session) queue(e *end, c *call) {
	e.inbound.Add(heldOpen(c))
	e.waiting++
	c.callee = calleeWaits
	if c.stream {
		c.up.granted = e.plan.Window + c.initial // the window is paid by the Open
	}
	if c.nested && !s.broken.NoLending {
		var h flow.Window
		e.room.Lend(&h)
		s.start(e, c, h, true)
		s.grantOpens(e)
		return
	}
	e.ready.push(c)
}

// workStep has a worker take a call.
func (s *session) workStep(e *end) callResult {
	if e.active+e.parked >= e.plan.Workers {
		return blocked
	}
	var h flow.Window
	c := s.next(e, &h)
	if c == nil {
		return blocked
	}
	s.start(e, c, h, false)
	if !c.nested {
		s.giveBack(e, c)
	}
	return moved
}

// next returns the next call that may run, with its window in h.
func (s *session) next(e *end, h *flow.Window) *call {
	c, other := e.large.first(), e.ready.first()
	if c != nil && (other == nil || other.priority <= c.priority) && s.fits(e, c, h) {
		e.large.remove(c)
		return c
	}
	for c = e.ready.first(); c != nil; c = e.ready.first() {
		e.ready.remove(c)
		if s.fits(e, c, h) {
			return c
		}
		e.large.push(c)
	}
	return nil
}

// fits reports whether there is room for the memory of c while it runs, and takes its window.
func (s *session) fits(e *end, c *call, h *flow.Window) bool {
	most := e.plan.Room
	if c.params > smallParams {
		most -= most / 8
	}
	switch {
	case e.holding > 0 && e.holding+c.params > most:
		return false // one call always fits
	case !c.stream:
		return true
	case c.nested: // with NoLending
		e.room.Lend(h)
		return true
	}
	e.room.Begin(h)
	return true
}

// start starts the handler of c.
func (s *session) start(e *end, c *call, h flow.Window, lent bool) {
	c.callee, c.lent = calleeRuns, lent
	if lent {
		e.lent++
	} else {
		e.active++
	}
	e.waiting--
	e.holding += c.params
	e.inbound.Remove(1, heldOpen(c))
	s.add(actor{kind: actHandler, c: c})
	if c.stream {
		s.add(actor{kind: actRecv, d: &c.up})
		s.add(actor{kind: actSend, d: &c.down})
		s.beginHandler(e, &c.up, h)
	} else {
		e.grant(e.room.End(&h))
	}
}

// answerAway answers a call on the reader. counted reports that its Open is counted.
func (s *session) answerAway(e *end, c *call, counted bool) {
	m := message{kind: abortMessage, c: c, held: heldMessage, size: 32}
	if c.nature == inline && counted {
		m.kind, m.held, m.size = resultMessage, heldMessage+c.result, 32+c.result
	}
	c.callee = calleeAnswers
	s.over(e, c, false)
	if counted && s.broken.ReturnEarly {
		s.giveBack(e, c)
	}
	if counted && !c.nested {
		e.awayCost += c.cost
		s.check(e.awayCost <= e.plan.Opens, "the waiting answers exceed the granted credit")
	}
	put := func() {
		c.callee = calleeEnded
		s.put(e, m)
		if counted && !c.nested {
			e.awayCost -= c.cost
		}
		if counted && !s.broken.ReturnEarly {
			s.giveBack(e, c)
		}
	}
	unpark := func() {
		e.away--
		e.holding -= m.held
		if !s.broken.ForgetCredit {
			s.grantOpens(e)
		}
		put()
	}
	e.away++
	e.holding += m.held
	if e.outbound.reserve(c.priority, m.held, unpark) == nil {
		unpark()
		return
	}
	s.counts.Away++
}

// onCancel processes the abort of a call by its caller.
func (s *session) onCancel(e *end, c *call) {
	s.over(e, c, false)
	s.finish(e, c)
	switch c.callee {
	case calleeWaits:
		if !e.ready.remove(c) {
			e.large.remove(c)
		}
		e.waiting--
		e.inbound.Remove(1, heldOpen(c))
		c.callee = calleeEnded
		s.giveBack(e, c)
	case calleeRuns:
		s.cancelHandler(c)
	}
}
