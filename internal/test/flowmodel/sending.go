package flowmodel

// sending is the state of the sender of a direction: the application, and its side of the window.
type sending struct {
	left      int        // Blocks still to be sent
	bulk      bool       // most of them are large
	sendSleep int        // sleeps for ever when this number is left; -1: never
	source    *direction // sends a Block for each one received there; nil: on its own
	passed    int        // Blocks of the source that have been passed on

	cost     int        // of the present Block; 0: none
	rest     int        // its cost without the pieces in the outbox
	piece    int        // cost of its next piece, which is counted as sent; 0: none
	leaving  *departure // the piece waits at the outbound soft limit
	reserved int        // bytes at that limit for later pieces, with ReserveWhole
	last     int        // total at the end of the Block under way, when it began

	sent     int  // cost of the sent Blocks and pieces
	departed int  // part of it that has left the outbox
	limit    int  // of the window
	skips    bool // a Skip is in the outbox

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
	case d.cost == 0 && timers && !d.skips && s.random.oneIn(32) && d.limit-d.sent > s.ends[d.to()].plan.Window:
		s.handBack(e, d)
		return moved
	case d.cost == 0:
		return s.nextBlock(e, d)
	case d.stoppedThere && d.piece == 0, timers && s.random.oneIn(s.patience[0]):
		s.giveUp(e, d)
		return moved
	case d.piece > 0:
		return s.passPiece(e, d)
	}
	return s.admit(e, d)
}

// handBack hands back the credit of a direction that is idle for a while, down to the least window.
func (s *session) handBack(e *end, d *direction) {
	d.skips = true
	s.count(e, message{kind: skipMessage, c: d.c, d: d, held: heldMessage, size: 16, total: s.ends[d.to()].plan.Window})
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
		d.rest = d.cost
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

// underWay reports whether a part of the present Block is in the outbox, or has departed.
func (d *direction) underWay() bool { return d.rest < d.cost }

// admit counts the next piece of the present Block as sent, if it may be sent now.
func (s *session) admit(e *end, d *direction) callResult {
	d.piece = s.fitting(d)
	if d.piece == 0 {
		return blocked
	}
	d.sent += d.piece
	return s.passPiece(e, d)
}

// fitting returns the cost of the next piece, or 0 if no piece may be sent now. A Block that fits
// into its window is one piece.
func (s *session) fitting(d *direction) int {
	peer, room := &s.ends[d.to()].plan, d.limit-d.sent
	least, small := leastPart, peer.Window
	if !d.underWay() {
		least += peer.Overhead
	}
	if s.broken.SmallWait {
		small = 4 * peer.Window
	}
	switch {
	case d.rest <= room, s.broken.Overshoot && room > 0:
		return d.rest
	case s.broken.NoPieces, s.broken.Overshoot, !d.underWay() && d.cost <= small, room < least:
		return 0 // its credit comes
	case s.random.oneIn(8):
		return s.random.within(least, room)
	}
	return room
}

// passPiece puts the next piece of the present Block into the outbox, behind a wait at the outbound
// soft limit.
func (s *session) passPiece(e *end, d *direction) callResult {
	m := s.pieceMessage(d)
	queued := d.leaving != nil
	if !s.countPiece(e, d, m.held) {
		if queued {
			return blocked
		}
		return moved
	}
	if m.total > 0 {
		s.counts.Cut++
		d.last = d.sent + d.rest - d.piece
	}
	d.rest -= d.piece
	d.piece = 0
	if d.rest == 0 {
		d.cost = 0
		d.left--
	}
	s.put(e, m)
	return moved
}

// countPiece reports whether the next piece is counted at the outbound soft limit, for which it may
// have to queue.
func (s *session) countPiece(e *end, d *direction, held int) bool {
	if d.reserved > 0 {
		d.reserved -= d.piece
		e.outbound.Grow(-d.piece)
		e.outbound.Add(held)
		return true
	}
	later := 0
	if s.broken.ReserveWhole {
		later = d.rest - d.piece
	}
	if d.leaving == nil {
		d.leaving = e.outbound.reserve(d.c.priority, held+later, nil)
	}
	if d.leaving != nil && !d.leaving.ready {
		return false
	}
	d.leaving, d.reserved = nil, later
	return true
}

// pieceMessage returns the message with the next piece of the present Block.
func (s *session) pieceMessage(d *direction) message {
	payload := d.piece
	if !d.underWay() {
		payload -= s.ends[d.to()].plan.Overhead
	}
	m := message{
		kind: partMessage, c: d.c, d: d, held: heldMessage + payload, size: 16 + payload, sent: d.piece,
		last: d.piece == d.rest, expires: s.broken.PiecesExpire && s.random.oneIn(16),
	}
	switch {
	case d.underWay():
	case m.last:
		m.kind, m.expires = blockMessage, s.random.oneIn(16)
	default:
		m.total = d.cost
	}
	return m
}

// giveUp ends a Send after the end of its context. A null part ends a Block under way, which then
// counts in full.
func (s *session) giveUp(e *end, d *direction) {
	under, rest := d.underWay(), d.rest
	d.sent -= d.piece
	s.abandonBlock(e, d)
	if under {
		s.counts.GivenUp++
		switch {
		case s.broken.GivenUpFreed, s.broken.GivenUpKept:
		case s.broken.StaleEnd:
			d.sent = d.last
		default:
			d.sent += rest
		}
		s.count(e, message{kind: nullMessage, c: d.c, d: d, held: heldMessage, size: 16, sent: rest})
	}
	d.left--
	if d.c.sleepy && d.sendSleep < 0 && s.random.oneIn(4) {
		d.sendSleep = d.left
	}
}

// abandonBlock drops the rest of the present Block.
func (s *session) abandonBlock(e *end, d *direction) {
	if d.leaving != nil {
		e.outbound.abandon(d.leaving)
	}
	if d.reserved > 0 {
		e.outbound.Grow(-d.reserved)
	}
	d.leaving, d.reserved = nil, 0
	d.cost, d.rest, d.piece = 0, 0, 0
}

// endSending ends the sending of a handler that returns.
func (s *session) endSending(e *end, d *direction) {
	if !d.c.stream || d.sendOver() {
		return
	}
	if d.cost > 0 {
		s.giveUp(e, d)
	}
	d.ended = true
}
