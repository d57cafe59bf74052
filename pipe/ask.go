package pipe

import (
	"runtime"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/limits"
)

// A Block that does not fit into its window asks. The sender says with an Ask up to which total it
// would send, and keeps what comes after in its order; the receiver answers with a Credit, or with
// an Allow when its application waits for that Block: so a large one is taken on arrival, and a
// reader that sleeps holds no room with it.

// rare is what few pipes have.
type rare struct {
	skipped    uint64 // Blocks dropped since the one that was taken last
	endSkipped uint64 // Blocks dropped between the last one and the peer's end-of-stream

	// Of what this side sends.
	// a sender is about to ask, waits for the answer or has got it; others wait behind it
	asker bool
	asks  bool   // its Ask has to depart, or one stands
	need  uint64 // the cost of the asker's Block
	asked uint64 // total of the Ask that stands; 0: none
	since uint64 // and what had been sent before it
	grant uint64 // total of the Allow that has come for the asker; 0: none
	// an Allow is used by a Block that may be dropped yet, and no Ask has departed since
	spent  bool
	back   bool   // an Allow has to be given back
	places int    // for Asks, in the order of the pipe, that have not been reached
	answer signal // to the asker

	// Of what the peer sends.
	wish      uint64       // total of the peer's Ask that has to be answered; 0: none
	claim     limits.Claim // in the line for room
	claimed   bool         // it waits there
	allowed   uint64       // total of the Allow that was given; 0: none
	allowDue  bool         // and has to depart
	used      bool         // a Block has come since
	debt      int          // what it holds of the room for large Blocks
	sheltered int          // or elsewhere, because nobody waits for it any more

	left    *leftover // nil unless the call is over
	garbage runtime.Cleanup
}

// more returns the rare part of p, which it makes if there is none.
func (p *Pipe) more() *rare {
	if p.rare == nil {
		p.rare = new(rare)
	}
	return p.rare
}

// The sender's side. Among several senders one asks; the others wait behind it, even if their
// Blocks would fit. What an Ask says is known only when its place is reached, and the last place
// speaks for all before it: it asks, or it gives back what was allowed and is not used, or nothing
// is left to be said.

// becomeAskerLocked lets a sender ask whose Block costs n, unless there is one who does.
func (p *Pipe) becomeAskerLocked(n uint64) bool {
	r := p.more()
	if r.asker {
		return false
	}
	r.asker, r.need = true, n
	return true
}

// askLocked reports whether a place for an Ask of the asker has to be taken now. It is behind all
// Blocks that are counted as sent: otherwise it would take back what one of them was allowed, or
// what it is allowed itself would be for one of them.
func (p *Pipe) askLocked() bool {
	r := p.rare
	if r.asks || r.grant > 0 {
		return false
	}
	if p.underWay.Or(asksNext)&^asksNext > 0 {
		return false // the last of them wakes the asker
	}
	p.underWay.And(^uint32(asksNext))
	r.asks = true
	r.places++
	return true
}

// goLocked is for the Block of the asker, which is sent now.
func (r *rare) goLocked() {
	r.asker = false
	r.asks = r.asked > 0 // one that has departed stands
	if r.grant > 0 {     // an Allow is for the next Block, whatever that costs
		r.grant, r.spent = 0, true
	}
}

// giveBackLocked lets an Allow be given back, for which a place has to be taken now: it returns
// true.
func (r *rare) giveBackLocked() bool {
	r.spent, r.back = false, true
	r.places++
	return true
}

// giveUpAsk is called by the asker if it does not send.
func (p *Pipe) giveUpAsk() {
	p.mu.Lock()
	r := p.rare
	r.asker, r.asks = false, r.asked > 0 // an Ask that has departed stands
	back := r.grant > 0 && r.giveBackLocked()
	r.grant = 0
	p.wakeLocked()
	p.mu.Unlock()
	if back {
		p.port.Ask()
	}
}

// Asking returns what the Ask says whose place is reached, with sent being the low bits of the cost
// of what has departed in this direction. ok is false if it is not to be sent.
func (e *End) Asking(sent uint32) (departed, total uint64, ok bool) {
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rare
	r.places--
	if r.places > 0 || p.state&(over|stoppedThere) != 0 {
		return 0, 0, false
	}
	departed = p.sent - uint64(uint32(p.sent)-sent)
	total = departed
	switch {
	case r.asks && r.asked == 0 && departed+r.need > p.limit:
		total += r.need
		r.asked, r.since = total, departed
	case r.asks && r.asked == 0:
		// the asker is about to go on without: credit came, or a Block was dropped
		r.asks = false
		fallthrough
	default:
		if !r.back {
			return 0, 0, false
		}
	}
	r.back, r.spent = false, false // an Ask gives back as well
	return departed, total, true
}

// Allow takes the peer's answer to an Ask: the next Block may reach total.
func (e *End) Allow(total uint64) {
	p := (*Pipe)(e)
	p.mu.Lock()
	r := p.rare
	if r == nil || r.asked == 0 || total < r.asked || p.state&over != 0 {
		p.mu.Unlock()
		return // nobody has asked
	}
	r.asks, r.asked = false, 0
	back := false
	if r.asker && p.sent == r.since && p.sent+r.need <= total {
		r.grant = total
	} else {
		back = r.giveBackLocked()
	}
	p.wakeLocked()
	p.mu.Unlock()
	if back {
		p.port.Ask()
	}
}

// The receiver's side.

// Ask takes the peer's question for the next Block, which is to reach total after sent. It reports
// false if that is not what has arrived.
func (e *End) Ask(sent, total uint64) bool {
	p := (*Pipe)(e)
	p.mu.Lock()
	if p.state&(over|stoppedHere|endedThere) != 0 || p.granted == Unlimited {
		p.mu.Unlock()
		return true
	}
	if sent != p.receivedLocked() {
		p.mu.Unlock()
		return false
	}
	var a after
	p.forgetWishLocked(&a) // and what was allowed, unless a Block has come since
	if total > sent && total > p.granted {
		p.more().wish = total
		p.answerLocked(&a)
	}
	e.unlock(a)
	return true
}

// answerLocked answers the peer's Ask if it is time for that.
func (p *Pipe) answerLocked(a *after) {
	r := p.rare
	if r == nil || r.wish == 0 || p.inbox.Len() > 0 || p.state&(over|stoppedHere|endedThere) != 0 {
		return
	}
	room, waits := p.terms.Room, p.waiting > 0 && !p.paused
	if need := r.wish - p.taken; waits && need > p.hold.Bytes() && need <= p.terms.Largest {
		a.add(room.Grow(&p.hold, min(max(need, 2*p.hold.Bytes()), p.terms.Largest), p.promisedLocked()))
	}
	if p.taken+p.hold.Bytes() >= r.wish {
		p.raiseLocked(r.wish, a)
		return
	}
	bytes := r.wish - p.taken - p.hold.Bytes()
	if !waits || r.claimed || r.allowed > 0 || bytes > uint64(room.Plan().Large) {
		// which is more than there ever will be
		return
	}
	r.claim = limits.Claim{Priority: int8(p.priority), Bytes: int(bytes), Granted: p.granting}
	if r.claimed = !room.Allow(&r.claim); !r.claimed {
		p.allowLocked(a)
	}
}

// wished returns the total of the peer's Ask, or 0 if none stands.
func (p *Pipe) wished() uint64 {
	if p.rare == nil {
		return 0
	}
	return p.rare.wish
}

// allowLocked answers the peer's Ask with what the claim has got.
func (p *Pipe) allowLocked(a *after) {
	r := p.rare
	r.allowed, r.debt, r.wish, r.used = r.wish, r.claim.Bytes, 0, false
	r.allowDue = true
	p.announceLocked(a)
}

// granting is called when the claim has got its room.
func (p *Pipe) granting() {
	p.mu.Lock()
	r := p.rare
	r.claimed = false
	var a after
	if r.wish > 0 && p.waiting > 0 && !p.paused && p.inbox.Len() == 0 && p.taken+p.hold.Bytes()+uint64(r.claim.Bytes) >= r.wish {
		p.allowLocked(&a)
	} else {
		a.add(p.terms.Room.Disallow(r.claim.Bytes))
		p.answerLocked(&a)
	}
	(*End)(p).unlock(a)
}

// withdrawLocked takes the claim out of the line, if it is there.
func (p *Pipe) withdrawLocked(a *after) {
	r := p.rare
	if !r.claimed {
		return
	}
	waited, claims := p.terms.Room.Withdraw(&r.claim)
	if waited { // otherwise granting is about to be called
		r.claimed = false
	}
	a.add(claims)
}

// settleLocked is called when a Block for which room was set aside has been taken.
func (p *Pipe) settleLocked(a *after) {
	if r := p.rare; r != nil && r.allowed > 0 && r.used {
		p.disallowLocked(a)
	}
}

// disallowLocked takes an Allow back, and its room.
func (p *Pipe) disallowLocked(a *after) {
	r := p.rare
	p.vacateLocked(a)
	r.allowed, r.allowDue, r.used = 0, false, false
}

// recallLocked takes back an Allow that has not departed: the peer's Ask stands.
func (p *Pipe) recallLocked(a *after) {
	r := p.rare
	wish := r.allowed
	p.disallowLocked(a)
	r.wish = wish
}

// vacateLocked gives back the room of an Allow.
func (p *Pipe) vacateLocked(a *after) {
	r := p.rare
	a.add(p.terms.Room.Disallow(r.debt))
	a.shelter += r.sheltered
	r.debt, r.sheltered = 0, 0
}

// forgetWishLocked forgets the peer's Ask, and takes back what was allowed, unless its Block waits
// in the inbox.
func (p *Pipe) forgetWishLocked(a *after) {
	r := p.rare
	if r == nil {
		return
	}
	r.wish = 0
	p.withdrawLocked(a)
	switch {
	case r.allowed == 0:
	case p.state&(over|stoppedHere) == stoppedHere: // what was allowed may come, and needs no room
		p.vacateLocked(a)
	case !r.used || p.inbox.Len() == 0 || p.state&over != 0:
		p.disallowLocked(a)
	}
}

// errNoShelter ends a call whose application has asked for a Block, does not wait for it any more,
// and has no other place for it.
var errNoShelter = codec.ErrStalled.Withf("the application gave up waiting for a Block that had been asked for, and nothing else has room for it: receive without a deadline, or lower the number of streams")

// leave is called by a receiver that waits no longer, because of its context. A Block that was
// allowed for it must not hold up those of other pipes.
func (p *Pipe) leave() {
	var a after
	p.mu.Lock()
	p.waiting--
	homeless := p.moveLocked(&a)
	(*End)(p).unlock(a)
	if homeless == 0 {
		return
	}
	sheltered := p.terms.Ledger.Shelter(homeless)
	a = after{}
	p.mu.Lock()
	switch r := p.rare; {
	case p.waiting > 0 || r.debt != homeless || p.state&over != 0: // it needs none any more
		if sheltered {
			a.shelter = homeless
		}
	case sheltered:
		a.add(p.terms.Room.Disallow(r.debt))
		r.sheltered, r.debt = r.debt, 0
	default:
		a.abort = true
	}
	(*End)(p).unlock(a)
}

// moveLocked moves what was allowed to spare room if nobody waits for it any more. It returns the
// bytes for which there is none.
func (p *Pipe) moveLocked(a *after) (homeless int) {
	r := p.rare
	if p.waiting > 0 || r == nil || p.granted == Unlimited || p.state&over != 0 {
		return 0
	}
	p.withdrawLocked(a)
	switch {
	case r.allowed == 0 || r.debt == 0:
	case r.allowDue: // the peer has not been told
		p.recallLocked(a)
	case p.terms.Room.Fit(&p.hold, p.hold.Bytes()+uint64(r.debt)):
		a.add(p.terms.Room.Disallow(r.debt))
		if r.debt = 0; !r.used {
			p.raiseLocked(r.allowed, a)
			r.allowed = 0
		}
	default:
		return r.debt
	}
	return 0
}

// Controls hands what the pipe, whose id is given, has to tell its peer to put, when that departs.
func (e *End) Controls(id uint64, put func(message.Control)) {
	p := (*Pipe)(e)
	p.mu.Lock()
	credit, allow := p.creditDue, p.rare != nil && p.rare.allowDue
	granted := p.granted
	var allowed uint64
	p.creditDue, p.announced = false, false
	if allow {
		allowed = p.rare.allowed
		p.rare.allowDue = false
	}
	done := p.state&(over|stoppedHere|endedThere) != 0
	p.mu.Unlock()
	if done {
		return
	}
	if credit {
		put(message.Credit{Pipe: id, Limit: granted})
	}
	if allow {
		put(message.Allow{Pipe: id, Total: allowed})
	}
}
