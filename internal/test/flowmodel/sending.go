package flowmodel

// sending is the state of the sender of a direction: the application, and its side of the window.
type sending struct {
	left      int        // Blocks still to be sent
	bulk      bool       // most of them are large
	sendSleep int        // sleeps for ever when this number is left; -1: never
	source    *direction // sends a Block for each one received there; nil: on its own
	passed    int        // Blocks of the source that have been passed on

	cost     int        // of the present Block; 0: none
	admitted bool       // it is counted as sent
	leaving  *departure // the Block waits at the outbound soft limit

	sent     int // cost of the sent Blocks
	departed int // cost of the departed Blocks
	limit    int // of the window

	asker      bool // the present Block asks
	asks       bool // its Ask has to depart, or is unanswered
	need       int  // the cost of the Block that asks
	asked      int  // total of the unanswered Ask; 0: none
	since      int  // cost sent before that Ask
	grant      int  // total of the received Allow; 0: none
	spent      bool // the Allow was used, and its Block has not been dropped
	back       bool // an Allow has to be returned
	asksPlaced int  // places for Asks that have not been reached

	ended        bool // the end of the direction was sent
	stoppedThere bool // the peer accepts no more Blocks
}

// sendOver reports whether the sender has finished.
func (d *direction) sendOver() bool {
	if d.ended || d.c.over[d.from] {
		return true
	}
	return d.stoppedThere && d.cost == 0
}

// sendReady reports whether the application has reached its sending.
func (d *direction) sendReady() bool {
	if d.isUp {
		return d.c.caller == callerSent
	}
	return d.c.handlerReady()
}

// sendStep is the sending application: one Block after the other, and then the end.
func (s *session) sendStep(d *direction, timers bool) callResult {
	e := &s.ends[d.from]
	switch {
	case d.c.over[d.from]:
		s.abandonBlock(e, d)
		return gone
	case d.sendOver():
		return gone
	case !d.sendReady(), d.cost == 0 && d.sendSleep >= 0 && d.left <= d.sendSleep:
		return blocked
	case d.cost == 0:
		return s.nextBlock(e, d)
	case d.stoppedThere && !d.admitted, timers && s.random.oneIn(s.patience[0]):
		s.giveUp(e, d)
		return moved
	case d.admitted:
		return s.passBlock(e, d)
	}
	return s.admit(e, d)
}

// nextBlock begins the next Block, or sends the end after the last one.
func (s *session) nextBlock(e *end, d *direction) callResult {
	more := d.left > 0
	if from := d.source; from != nil {
		more = from.takes > d.passed
		if !more && !from.recvOver() {
			return blocked
		}
	}
	if more {
		d.passed++
		d.cost = s.blockCost(d)
		return moved
	}
	d.ended = true
	s.count(e, message{kind: endMessage, c: d.c, d: d, held: heldMessage, size: 16})
	return gone
}

func (s *session) blockCost(d *direction) int {
	p := &s.ends[d.to()].plan
	if d.bulk && s.random.oneIn(2) {
		return p.Overhead + s.random.within(p.Largest/2, p.Largest)
	}
	return p.Overhead + s.random.skewed(min(p.Largest, 4*p.Window))
}

// admit counts the present Block as sent, if it may be sent now.
func (s *session) admit(e *end, d *direction) callResult {
	peer := &s.ends[d.to()].plan
	switch {
	case d.sent+d.cost <= d.limit, s.broken.Overshoot && d.sent < d.limit:
	case d.asker && d.sent+d.cost <= d.grant:
	case s.broken.Overshoot, s.broken.NoAsks, d.cost <= peer.Window:
		return blocked // its credit comes without asking
	default:
		return s.ask(e, d)
	}
	if d.asker {
		d.asker = false
		d.asks = d.asked > 0 // one that has departed remains
		d.spent = d.spent || d.grant > 0
		d.grant = 0 // an Allow is for the next Block, regardless of its cost
	}
	d.sent += d.cost
	d.admitted = true
	return s.passBlock(e, d)
}

// passBlock waits at the outbound soft limit with the present Block.
func (s *session) passBlock(e *end, d *direction) callResult {
	payload := d.cost - s.ends[d.to()].plan.Overhead
	m := message{
		kind: blockMessage, c: d.c, d: d, held: heldMessage + payload, size: 16 + payload, sent: d.cost,
		expires: s.random.oneIn(16),
	}
	if d.leaving == nil {
		if d.leaving = e.outbound.reserve(d.c.priority, m.held, nil); d.leaving != nil {
			return moved
		}
	} else if !d.leaving.ready {
		return blocked
	}
	d.leaving, d.admitted, d.cost = nil, false, 0
	d.left--
	s.put(e, m)
	return moved
}

// ask asks for the present Block, unless there is an unanswered Ask.
func (s *session) ask(e *end, d *direction) callResult {
	fresh := !d.asker
	d.asker, d.need = true, d.cost
	if d.asks || d.grant > 0 {
		if fresh {
			return moved
		}
		return blocked
	}
	d.asks = true
	s.placeAsk(e, d)
	return moved
}

// placeAsk reserves a place for an Ask, in the order of the pipe.
func (s *session) placeAsk(e *end, d *direction) {
	d.asksPlaced++
	s.count(e, message{kind: askMessage, c: d.c, d: d, held: heldMessage, size: 24})
}

// asking fills in the content of the Ask at the reached place. It returns false if no Ask is to be
// sent: the last place stands for all places before it.
func (s *session) asking(d *direction, m *message) bool {
	d.asksPlaced--
	if d.asks && d.asked == 0 && d.departed+d.need <= d.limit && !s.broken.StaleAsks {
		d.asks = false // a Credit came first
	}
	if d.asksPlaced > 0 || d.stoppedThere || d.asked > 0 || !d.asks && !d.back {
		return false
	}
	m.sent, m.total = d.departed, d.departed
	if d.asks {
		s.counts.Asked++
		m.total += d.need
		d.asked, d.since = m.total, m.sent
	}
	d.back, d.spent = false, false // the Ask also returns the Allow
	return true
}

// giveBackAllow returns an Allow that is not used.
func (s *session) giveBackAllow(e *end, d *direction) {
	d.spent = false
	if s.broken.KeepAllows {
		return
	}
	d.back = true
	s.counts.GivenBack++
	s.placeAsk(e, d)
}

// giveUp ends a Send after the end of its context.
func (s *session) giveUp(e *end, d *direction) {
	switch {
	case d.admitted:
		cost := d.cost
		s.abandonBlock(e, d)
		s.unsend(e, d, cost)
	case d.asker:
		d.cost, d.asker, d.asks = 0, false, d.asked > 0
		if d.grant > 0 {
			d.grant = 0
			s.giveBackAllow(e, d)
		} else if s.broken.LowerAsks && d.asked > 0 {
			d.asks, d.asked = false, 0
			s.giveBackAllow(e, d)
		}
	default:
		d.cost = 0
	}
	d.left--
	if d.c.sleepy && d.sendSleep < 0 && s.random.oneIn(4) {
		d.sendSleep = d.left
	}
}

// abandonBlock drops the present Block.
func (s *session) abandonBlock(e *end, d *direction) {
	if d.leaving != nil {
		e.outbound.abandon(d.leaving)
	}
	d.leaving, d.admitted, d.cost = nil, false, 0
}

// unsend reverts the accounting of a Block that will not be sent.
func (s *session) unsend(e *end, d *direction, cost int) {
	d.sent -= cost
	if d.spent {
		s.giveBackAllow(e, d)
	}
}

// onCredit processes a Credit that has arrived.
func (s *session) onCredit(d *direction, total int) {
	if total <= d.limit {
		return
	}
	d.limit = total
	if d.asked > 0 && total >= d.asked {
		d.asks, d.asked = false, 0 // it is answered
	}
}

// onAllow processes an Allow that has arrived.
func (s *session) onAllow(e *end, d *direction, total int) {
	if d.asked == 0 || total < d.asked || d.c.over[d.from] {
		return // there was no Ask
	}
	d.asks, d.asked = false, 0
	if d.asker && d.sent == d.since && d.sent+d.need <= total {
		d.grant = total
		return
	}
	s.giveBackAllow(e, d)
}
