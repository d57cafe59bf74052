package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
)

// onAsk processes an Ask that has arrived.
func (s *session) onAsk(e *end, d *direction, sent, total int) {
	if d.c.over[e.index] || d.stopped || d.eof || s.unknownCall(e, d) {
		return
	}
	s.check(sent == d.received, "an Ask differs from the received cost")
	s.forgetAsk(e, d) // and takes back an Allow, unless its Block has arrived since
	if total > sent && total > d.granted {
		d.wish = total
		s.answerAsk(e, d)
	}
}

// answerAsk answers the present Ask if possible now: with a Credit if the window is large enough,
// or as soon as the application waits for the Block.
func (s *session) answerAsk(e *end, d *direction) {
	if d.wish == 0 || d.c.over[e.index] || d.stopped || d.eof || d.inbox.len() > 0 && !s.broken.AllowEarly {
		return
	}
	window := int(d.hold.Bytes())
	if need := d.wish - d.taken; d.waiting && need > window && need <= s.largestWindow {
		want := min(max(need, 2*window), s.largestWindow)
		e.grant(e.room.Grow(&d.hold, uint64(want), uint64(max(0, d.granted-d.taken))))
	}
	if d.taken+int(d.hold.Bytes()) >= d.wish {
		s.raise(d)
		return
	}
	bytes := d.wish - d.taken - int(d.hold.Bytes())
	if !d.waiting && !s.broken.AllowEarly || d.claimed || d.allowed > 0 || bytes > e.plan.Large {
		return
	}
	d.claim = flow.Waiter{Priority: d.c.priority, Bytes: bytes, Granted: func(bool) { s.claimGranted(e, d) }}
	if d.claimed = !e.room.Allow(&d.claim); !d.claimed {
		s.allow(d)
	}
}

// allow answers with the room of the granted claim.
func (s *session) allow(d *direction) {
	s.counts.Allowed++
	d.allowed, d.debt, d.wish, d.used = d.wish, d.claim.Bytes, 0, false
	d.allowDue = true
	s.announce(d)
}

// claimGranted is called when the claim is granted. Its room may not be needed any more.
func (s *session) claimGranted(e *end, d *direction) {
	d.claimed = false
	may := d.waiting && d.inbox.len() == 0 || s.broken.AllowEarly
	if d.wish > 0 && may && d.taken+int(d.hold.Bytes())+d.claim.Bytes >= d.wish {
		s.allow(d)
		return
	}
	e.grant(e.room.Disallow(d.claim.Bytes))
	s.answerAsk(e, d)
}

// withdraw withdraws the claim, if it waits.
func (s *session) withdraw(e *end, d *direction) {
	if !d.claimed {
		return
	}
	waited, granted := e.room.Withdraw(&d.claim)
	if waited { // otherwise its Granted is about to be called
		d.claimed = false
	}
	e.grant(granted)
}

// settle is called when a Block was taken: the first Block after an Allow has used the Allow.
func (s *session) settle(e *end, d *direction) {
	if d.allowed > 0 && d.used {
		s.disallow(e, d)
	}
}

// disallow takes an Allow back, and releases its room.
func (s *session) disallow(e *end, d *direction) {
	s.vacate(e, d)
	d.allowed, d.allowDue, d.used = 0, false, false
}

// recall takes back an Allow that the peer has not received. The Ask remains unanswered.
func (s *session) recall(e *end, d *direction) {
	wish := d.allowed
	s.disallow(e, d)
	d.wish = wish
}

// vacate releases the room of an Allow.
func (s *session) vacate(e *end, d *direction) {
	e.grant(e.room.Disallow(d.debt))
	e.holding -= d.sheltered
	d.debt, d.sheltered = 0, 0
}

// forgetAsk drops the present Ask, and takes back an Allow, unless its Block has arrived.
func (s *session) forgetAsk(e *end, d *direction) {
	d.wish = 0
	s.withdraw(e, d)
	switch over := d.c.over[e.index]; {
	case d.allowed == 0:
	case !over && d.stopped: // the allowed Block may arrive, and needs no room
		s.vacate(e, d)
	case !d.used:
		s.disallow(e, d)
	}
}

// leave ends a Receive before its Block has arrived. An allowed Block must not block the large
// Blocks of other streams: it moves to spare room, or to the room of running calls, or the call
// ends.
func (s *session) leave(e *end, d *direction) {
	d.waiting = false
	if d.c.over[e.index] || s.broken.AbandonAllows {
		return
	}
	s.withdraw(e, d)
	switch {
	case d.allowed == 0 || d.debt == 0:
	case d.allowDue: // the Allow has not been sent
		s.recall(e, d)
	case e.room.Fit(&d.hold, d.hold.Bytes()+uint64(d.debt)):
		s.counts.Moved++
		e.grant(e.room.Disallow(d.debt))
		if d.debt = 0; !d.used {
			d.allowed = 0
			s.raise(d)
		}
	case e.holding+d.debt <= e.plan.Room:
		s.counts.Sheltered++
		e.holding += d.debt
		e.grant(e.room.Disallow(d.debt))
		d.sheltered, d.debt = d.debt, 0
	default:
		s.counts.Stalled++
		if d.isUp {
			s.stall(e, d.c)
		} else {
			s.abort(e, d.c)
			s.endCaller(e, d.c)
		}
	}
}
