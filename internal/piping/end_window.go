package piping

import (
	"math"
	"runtime"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/limits"
)

// MaxWindow is the largest window, in bytes.
const MaxWindow = math.MaxUint32

// Unlimited is the limit of a direction whose receiver has no windows.
const Unlimited = math.MaxUint64

// Terms are what the two sides of a session have agreed on for their Blocks. The pipes of a session
// share them.
type Terms struct {
	Room     *limits.Room // for what arrives; nil: this side has no windows
	Overhead uint64       // what a Block that arrives costs besides its payload
	Early    uint64       // what is never kept from the peer: see [limits.Plan].Window
	Largest  uint64       // window, to which they grow

	PeerOverhead uint64 // what a Block that is sent costs besides its payload
	PeerEarly    uint64 // up to which cost the peer's credit comes without being asked for

	Ledger Ledger

	Left atomic.Int64 // pipes that are over, and whose Blocks nobody has taken yet
}

// Ledger is the session, where the pipes account for what they hold. Its methods are called without
// a lock.
type Ledger interface {
	// Taken says that the application has taken, or will never take, messages that held so many
	// bytes in all.
	Taken(messages, bytes int)

	// Shelter sets bytes aside for what has been asked for, and nobody waits for any more, or
	// reports false. A negative number gives them back.
	Shelter(bytes int) bool
}

// Hold is the number of bytes that a Block which waits in a pipe holds besides its payload.
const Hold = blockSize + 6

// cost is what a Block that is sent counts against the peer's window.
func (e *End) cost(payload int) uint64 { return uint64(payload) + e.terms.PeerOverhead }

// receivedLocked returns the cost of all Blocks that have arrived.
func (e *End) receivedLocked() uint64 {
	return e.taken + uint64(e.inboxed) + uint64(e.inbox.Len())*e.terms.Overhead
}

// arriveLocked reports whether the peer may send a Block of so many bytes.
func (e *End) arriveLocked(payload int) bool {
	if e.granted == Unlimited {
		return true
	}
	limit := e.granted
	if r := e.rare; r != nil && r.allowed > 0 && !r.used { // the first Block uses it up
		limit = max(limit, r.allowed)
		r.used = true
	}
	cost := uint64(payload) + e.terms.Overhead
	after := e.receivedLocked() + cost
	if after > limit {
		return false
	}
	e.usedUp = e.usedUp || limit-after < max(cost, e.terms.Early)
	e.largest = max(e.largest, uint32(min(cost, math.MaxUint32)))
	return true
}

// promisedLocked returns what the peer was promised beyond what has been taken.
func (e *End) promisedLocked() uint64 {
	if e.granted <= e.taken {
		return 0
	}
	return e.granted - e.taken
}

// BeginHandler gives the pipe of a handler that is about to run its window.
func (e *End) BeginHandler(h limits.Hold) {
	if e.terms.Room == nil {
		return
	}
	e.mu.Lock()
	var a after
	if e.state&(over|endedThere|stoppedHere) != 0 { // nothing more comes
		a.add(e.terms.Room.End(&h))
	} else {
		e.hold = h
		e.raiseLocked(0, &a)
	}
	e.unlock(a)
}

// raiseLocked grants what the window holds: all of it or, where it has place for some of the
// largest Blocks that come, what these cost, but least at least, if it is not 0. A sender that
// fills what it is granted would send a small Block behind the large ones.
func (e *End) raiseLocked(least uint64, a *after) {
	received, total := e.receivedLocked(), e.taken+e.hold.Bytes()
	if rest := max(e.terms.Early, 1) - 1; e.largest > 0 && total > received+rest {
		if whole := (total - received - rest) / uint64(e.largest); whole > 0 {
			total = max(received+rest+whole*uint64(e.largest), min(least, total))
		}
	}
	if total <= e.granted {
		return
	}
	e.granted, e.creditDue = total, true
	e.announceLocked(a)
	if r := e.rare; r != nil && r.wish > 0 && total >= r.wish {
		r.wish = 0
		e.withdrawLocked(a)
	}
}

// announceLocked lets the port be told, once, that there is something for the peer.
func (e *End) announceLocked(a *after) {
	a.announce = a.announce || !e.announced
	e.announced = true
}

// takenLocked sees to what follows from the taking of a Block that cost so much: windows grow and
// shrink, and credit goes out when half of the window is owed, when the peer asks for it, or when
// little is left.
func (e *End) takenLocked(cost uint64, a *after) {
	e.taken += cost
	if e.granted == Unlimited {
		return
	}
	room := e.terms.Room
	a.add(room.Took(&e.hold))
	if e.state&over != 0 {
		return // what is left holds the room
	}
	e.settleLocked(a) // what was allowed is the first Block that is taken behind it
	drained := e.inbox.Len() == 0
	if e.state&endedThere != 0 {
		if drained {
			a.add(room.Shrink(&e.hold, 0))
		}
		return
	}
	left := e.promisedLocked()
	grows := drained && e.usedUp // the peer waits for the window, and not for the application
	if grows {
		e.usedUp = false
		a.add(room.Grow(&e.hold, min(2*e.hold.Bytes(), e.terms.Largest), left))
	}
	window := e.hold.Bytes()
	due := e.taken+window >= e.granted+window/2 || drained && (left < e.terms.Early || e.wished() > 0)
	if due {
		if !grows {
			a.add(room.Grow(&e.hold, window, left)) // it shrinks where others need the room
		}
		e.raiseLocked(e.wished(), a)
	}
	if due || grows {
		e.answerLocked(a)
	}
}

// releaseLocked gives back all the room that the pipe holds, for Blocks that will not be taken.
func (e *End) releaseLocked(a *after) {
	if e.granted == Unlimited {
		return
	}
	e.forgetWishLocked(a)
	a.add(e.terms.Room.End(&e.hold))
}

// leftover is what nobody has taken of a pipe whose call has ended well. It holds its place until
// it is taken, or until nobody can take it any more.
type leftover struct {
	terms           *Terms
	messages, bytes int
	hold            limits.Hold
	debt            int           // of the room for large Blocks
	shelter         int           // or elsewhere
	done            atomic.Uint32 // how many of begin and end
}

// heldLeft is the number of bytes that a leftover holds itself, with what is rare in its pipe.
const heldLeft = 256

// leaveLocked lets what waits in the inbox stay for the application.
func (e *End) leaveLocked(a *after) {
	messages, bytes := e.waitingLocked()
	if messages == 0 {
		e.releaseLocked(a)
		return
	}
	l := &leftover{terms: e.terms, messages: messages, bytes: bytes}
	if e.granted != Unlimited {
		switch r := e.rare; {
		case r == nil || !r.used:
		case r.debt > 0: // who has waited for it is about to take it
			l.debt, r.debt = r.debt, 0
		case r.sheltered > 0:
			l.shelter, r.sheltered = r.sheltered, 0
		}
		e.forgetWishLocked(a)
		a.add(e.terms.Room.Shrink(&e.hold, e.receivedLocked()-e.taken))
		l.hold, e.hold = e.hold, limits.Hold{}
	}
	e.terms.Left.Add(1)
	a.leaves = l
	e.more().left = l
	e.more().garbage = runtime.AddCleanup(e, (*leftover).end, l)
}

// takeLeftLocked notes that a Block of what is left was taken.
func (e *End) takeLeftLocked(bytes int, a *after) {
	l := e.rare.left
	l.messages--
	l.bytes -= bytes
	if l.messages == 0 {
		e.dropLeftLocked(a)
	}
}

// dropLeftLocked lets go of what is left, if anything is.
func (e *End) dropLeftLocked(a *after) {
	if e.rare == nil || e.rare.left == nil {
		return
	}
	e.rare.garbage.Stop()
	a.left, e.rare.left = e.rare.left, nil
}

// begin counts what l holds itself. Its end may have come before.
func (l *leftover) begin() {
	l.terms.Ledger.Taken(0, -heldLeft)
	l.over()
}

// over is called by begin and by end: whoever comes last takes back what begin has counted.
func (l *leftover) over() {
	if l.done.Add(1) == 2 {
		l.terms.Ledger.Taken(0, heldLeft)
	}
}

// end gives back what l holds.
func (l *leftover) end() {
	l.over()
	l.terms.Left.Add(-1)
	if l.messages > 0 {
		l.terms.Ledger.Taken(l.messages, l.bytes)
	}
	if l.shelter > 0 {
		l.terms.Ledger.Shelter(-l.shelter)
	}
	if l.terms.Room != nil {
		limits.Grant(l.terms.Room.Disallow(l.debt))
		limits.Grant(l.terms.Room.End(&l.hold))
	}
}

// after is what has to be done when the lock of a pipe is free again.
type after struct {
	claims          []*limits.Claim // that were granted
	announce        bool            // the peer has to be told something
	messages, bytes int             // that were taken
	shelter         int             // bytes of shelter to be given back
	abort           bool            // nobody has room for what the peer was allowed
	leaves, left    *leftover       // that begins, and one that holds nothing any more
}

func (a *after) add(claims []*limits.Claim) {
	if len(claims) > 0 {
		a.claims = append(a.claims, claims...)
	}
}

// unlock unlocks, and does a.
func (e *End) unlock(a after) {
	e.mu.Unlock()
	a.do(e)
}

// do does what has to be done for e.
func (a *after) do(e *End) {
	if a.messages > 0 {
		e.terms.Ledger.Taken(a.messages, a.bytes)
	}
	if a.announce {
		e.port.Announce()
	}
	if a.shelter > 0 {
		e.terms.Ledger.Shelter(-a.shelter)
	}
	if a.leaves != nil {
		a.leaves.begin()
	}
	if a.left != nil {
		a.left.end()
	}
	limits.Grant(a.claims)
	if a.abort {
		e.Abort(errNoShelter)
	}
}
