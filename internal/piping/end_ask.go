package piping

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

// more returns the rare part of e, which it makes if there is none.
func (e *End) more() *rare {
	if e.rare == nil {
		e.rare = new(rare)
	}
	return e.rare
}

// The sender's side. Among several senders one asks; the others wait behind it, even if their
// Blocks would fit. What an Ask says is known only when its place is reached, and the last place
// speaks for all before it: it asks, or it gives back what was allowed and is not used, or nothing
// is left to be said.

// becomeAskerLocked lets a sender ask whose Block costs n, unless there is one who does.
func (e *End) becomeAskerLocked(n uint64) bool {
	r := e.more()
	if r.asker {
		return false
	}
	r.asker, r.need = true, n
	return true
}

// askLocked reports whether a place for an Ask of the asker has to be taken now. It is behind all
// Blocks that are counted as sent: otherwise it would take back what one of them was allowed, or
// what it is allowed itself would be for one of them.
func (e *End) askLocked() bool {
	r := e.rare
	if r.asks || r.grant > 0 {
		return false
	}
	if e.underWay.Or(asksNext)&^asksNext > 0 {
		return false // the last of them wakes the asker
	}
	e.underWay.And(^uint32(asksNext))
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
func (e *End) giveUpAsk() {
	e.mu.Lock()
	r := e.rare
	r.asker, r.asks = false, r.asked > 0 // an Ask that has departed stands
	back := r.grant > 0 && r.giveBackLocked()
	r.grant = 0
	e.wakeLocked()
	e.mu.Unlock()
	if back {
		e.port.Ask()
	}
}

// Asking returns what the Ask says whose place is reached, with sent being the low bits of the cost
// of what has departed in this direction. ok is false if it is not to be sent.
func (e *End) Asking(sent uint32) (departed, total uint64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.rare
	r.places--
	if r.places > 0 || e.state&(over|stoppedThere) != 0 {
		return 0, 0, false
	}
	departed = e.sent - uint64(uint32(e.sent)-sent)
	total = departed
	switch {
	case r.asks && r.asked == 0 && departed+r.need > e.limit:
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

// AllowArrived takes the peer's answer to an Ask: the next Block may reach total.
func (e *End) AllowArrived(total uint64) {
	e.mu.Lock()
	r := e.rare
	if r == nil || r.asked == 0 || total < r.asked || e.state&over != 0 {
		e.mu.Unlock()
		return // nobody has asked
	}
	r.asks, r.asked = false, 0
	back := false
	if r.asker && e.sent == r.since && e.sent+r.need <= total {
		r.grant = total
	} else {
		back = r.giveBackLocked()
	}
	e.wakeLocked()
	e.mu.Unlock()
	if back {
		e.port.Ask()
	}
}

// The receiver's side.

// AskArrived takes the peer's question for the next Block, which is to reach total after sent. It reports
// false if that is not what has arrived.
func (e *End) AskArrived(sent, total uint64) bool {
	e.mu.Lock()
	if e.state&(over|stoppedHere|endedThere) != 0 || e.granted == Unlimited {
		e.mu.Unlock()
		return true
	}
	if sent != e.receivedLocked() {
		e.mu.Unlock()
		return false
	}
	var a after
	e.forgetWishLocked(&a) // and what was allowed, unless a Block has come since
	if total > sent && total > e.granted {
		e.more().wish = total
		e.answerLocked(&a)
	}
	e.unlock(a)
	return true
}

// answerLocked answers the peer's Ask if it is time for that.
func (e *End) answerLocked(a *after) {
	r := e.rare
	if r == nil || r.wish == 0 || e.inbox.Len() > 0 || e.state&(over|stoppedHere|endedThere) != 0 {
		return
	}
	room, waits := e.terms.Room, e.waiting > 0 && !e.paused
	if need := r.wish - e.taken; waits && need > e.hold.Bytes() && need <= e.terms.Largest {
		a.add(room.Grow(&e.hold, min(max(need, 2*e.hold.Bytes()), e.terms.Largest), e.promisedLocked()))
	}
	if e.taken+e.hold.Bytes() >= r.wish {
		e.raiseLocked(r.wish, a)
		return
	}
	bytes := r.wish - e.taken - e.hold.Bytes()
	if !waits || r.claimed || r.allowed > 0 || bytes > uint64(room.Plan().Large) {
		// which is more than there ever will be
		return
	}
	r.claim = limits.Claim{Priority: int8(e.priority), Bytes: int(bytes), Granted: e.granting}
	if r.claimed = !room.Allow(&r.claim); !r.claimed {
		e.allowLocked(a)
	}
}

// wished returns the total of the peer's Ask, or 0 if none stands.
func (e *End) wished() uint64 {
	if e.rare == nil {
		return 0
	}
	return e.rare.wish
}

// allowLocked answers the peer's Ask with what the claim has got.
func (e *End) allowLocked(a *after) {
	r := e.rare
	r.allowed, r.debt, r.wish, r.used = r.wish, r.claim.Bytes, 0, false
	r.allowDue = true
	e.announceLocked(a)
}

// granting is called when the claim has got its room.
func (e *End) granting() {
	e.mu.Lock()
	r := e.rare
	r.claimed = false
	var a after
	if r.wish > 0 && e.waiting > 0 && !e.paused && e.inbox.Len() == 0 && e.taken+e.hold.Bytes()+uint64(r.claim.Bytes) >= r.wish {
		e.allowLocked(&a)
	} else {
		a.add(e.terms.Room.Disallow(r.claim.Bytes))
		e.answerLocked(&a)
	}
	e.unlock(a)
}

// withdrawLocked takes the claim out of the line, if it is there.
func (e *End) withdrawLocked(a *after) {
	r := e.rare
	if !r.claimed {
		return
	}
	waited, claims := e.terms.Room.Withdraw(&r.claim)
	if waited { // otherwise granting is about to be called
		r.claimed = false
	}
	a.add(claims)
}

// settleLocked is called when a Block for which room was set aside has been taken.
func (e *End) settleLocked(a *after) {
	if r := e.rare; r != nil && r.allowed > 0 && r.used {
		e.disallowLocked(a)
	}
}

// disallowLocked takes an Allow back, and its room.
func (e *End) disallowLocked(a *after) {
	r := e.rare
	e.vacateLocked(a)
	r.allowed, r.allowDue, r.used = 0, false, false
}

// recallLocked takes back an Allow that has not departed: the peer's Ask stands.
func (e *End) recallLocked(a *after) {
	r := e.rare
	wish := r.allowed
	e.disallowLocked(a)
	r.wish = wish
}

// vacateLocked gives back the room of an Allow.
func (e *End) vacateLocked(a *after) {
	r := e.rare
	a.add(e.terms.Room.Disallow(r.debt))
	a.shelter += r.sheltered
	r.debt, r.sheltered = 0, 0
}

// forgetWishLocked forgets the peer's Ask, and takes back what was allowed, unless its Block waits
// in the inbox.
func (e *End) forgetWishLocked(a *after) {
	r := e.rare
	if r == nil {
		return
	}
	r.wish = 0
	e.withdrawLocked(a)
	switch {
	case r.allowed == 0:
	case e.state&(over|stoppedHere) == stoppedHere: // what was allowed may come, and needs no room
		e.vacateLocked(a)
	case !r.used || e.inbox.Len() == 0 || e.state&over != 0:
		e.disallowLocked(a)
	}
}

// errNoShelter ends a call whose application has asked for a Block, does not wait for it any more,
// and has no other place for it.
var errNoShelter = codec.ErrStalled.Withf("the application gave up waiting for a Block that had been asked for, and nothing else has room for it: receive without a deadline, or lower the number of streams")

// leave is called by a receiver that waits no longer, because of its context. A Block that was
// allowed for it must not hold up those of other pipes.
func (e *End) leave() {
	var a after
	e.mu.Lock()
	e.waiting--
	homeless := e.moveLocked(&a)
	e.unlock(a)
	if homeless == 0 {
		return
	}
	sheltered := e.terms.Ledger.Shelter(homeless)
	a = after{}
	e.mu.Lock()
	switch r := e.rare; {
	case e.waiting > 0 || r.debt != homeless || e.state&over != 0: // it needs none any more
		if sheltered {
			a.shelter = homeless
		}
	case sheltered:
		a.add(e.terms.Room.Disallow(r.debt))
		r.sheltered, r.debt = r.debt, 0
	default:
		a.abort = true
	}
	e.unlock(a)
}

// moveLocked moves what was allowed to spare room if nobody waits for it any more. It returns the
// bytes for which there is none.
func (e *End) moveLocked(a *after) (homeless int) {
	r := e.rare
	if e.waiting > 0 || r == nil || e.granted == Unlimited || e.state&over != 0 {
		return 0
	}
	e.withdrawLocked(a)
	switch {
	case r.allowed == 0 || r.debt == 0:
	case r.allowDue: // the peer has not been told
		e.recallLocked(a)
	case e.terms.Room.Fit(&e.hold, e.hold.Bytes()+uint64(r.debt)):
		a.add(e.terms.Room.Disallow(r.debt))
		if r.debt = 0; !r.used {
			e.raiseLocked(r.allowed, a)
			r.allowed = 0
		}
	default:
		return r.debt
	}
	return 0
}

// Controls hands what the pipe, whose id is given, has to tell its peer to put, when that departs.
func (e *End) Controls(id uint64, put func(message.Control)) {
	e.mu.Lock()
	credit, allow := e.creditDue, e.rare != nil && e.rare.allowDue
	granted := e.granted
	var allowed uint64
	e.creditDue, e.announced = false, false
	if allow {
		allowed = e.rare.allowed
		e.rare.allowDue = false
	}
	done := e.state&(over|stoppedHere|endedThere) != 0
	e.mu.Unlock()
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
