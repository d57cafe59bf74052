package resume

import (
	"container/list"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/ranking"
)

// Sessions are the suspended sessions of a node that its peers have begun: those that have
// lost their Wire and wait for another one. Their number and their bytes are bounded, for each
// owner and in all. Above a bound, the node ends the oldest session of the owner that holds the
// most.
type Sessions struct {
	most, mostOfOwner Amount // fixed; 0: any number

	mu     sync.Mutex
	total  Amount                    // guarded by mu, as all below
	owners map[*quota.Owner]*byOwner // owners with suspended sessions

	// the same owners; the owner with most is the first, and is needed for each session above the
	// bound, while there may be tens of thousands
	bySessions, byBytes ranking.Ranking[byOwner]
}

// Amount is a number of suspended sessions, and the bytes that they hold.
type Amount struct{ Sessions, Bytes int }

// exceeds reports whether a is more than most.
func (a Amount) exceeds(most Amount) bool {
	return most.Sessions > 0 && a.Sessions > most.Sessions || most.Bytes > 0 && a.Bytes > most.Bytes
}

// byOwner are the suspended sessions of one owner.
type byOwner struct {
	oldest list.List // of *suspended
	Amount
	bySessions, byBytes ranking.Place
}

// Entry is the list entry of a session that is, or may become, suspended.
type Entry struct {
	// fixed, as owner; nil if this side has dialled, which bounds the number itself
	session Session
	owner   *quota.Owner

	of      *byOwner // nil: not suspended; guarded by the list
	element *list.Element
	bytes   int
}

// Init makes the session one whose suspension counts for its owner.
func (a *Entry) Init(s Session, owner *quota.Owner) { a.session, a.owner = s, owner }

// Counts returns the numbers of suspended sessions, and of owners that have one.
func (w *Sessions) Counts() (sessions, owners int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total.Sessions, len(w.owners)
}

// Limits returns the bounds, in all and of one owner.
func (w *Sessions) Limits() (most, mostOfOwner Amount) {
	return w.most, w.mostOfOwner
}

// Session is the interface of a session for Sessions.
type Session interface {
	// Holds returns the number of bytes that the session holds.
	Holds() int

	// Fail ends the session.
	Fail(*codec.Abort)
}

// Init prepares w for a node.
func (w *Sessions) Init(most, mostOfOwner Amount) {
	w.most, w.mostOfOwner = most, mostOfOwner
	w.owners = make(map[*quota.Owner]*byOwner)
	w.bySessions = ranking.New(
		func(a, b *byOwner) bool { return a.Sessions > b.Sessions },
		func(of *byOwner) *ranking.Place { return &of.bySessions })
	w.byBytes = ranking.New(
		func(a, b *byOwner) bool { return a.Bytes > b.Bytes },
		func(of *byOwner) *ranking.Place { return &of.byBytes })
}

// Add records that a is suspended. It may end other sessions.
func (w *Sessions) Add(a *Entry) {
	if a.session == nil {
		return
	}
	held := a.session.Holds()
	w.mu.Lock()
	of := w.owners[a.owner]
	if of == nil {
		of = new(byOwner)
		w.owners[a.owner] = of
	}
	a.of, a.element = of, of.oldest.PushBack(a)
	w.changeLocked(a, 1, held)
	ends := w.exceedLocked(of)
	w.mu.Unlock()
	failAway(ends)
}

func failAway(ends []Session) {
	for _, s := range ends {
		s.Fail(errTooManyAway)
	}
}

var errTooManyAway = codec.ErrUnavailable.Withf("too many sessions wait for their peers, and of this one's peer it has waited longest: see Resume.For")

// changeLocked adds to the amounts of a and its owner.
func (w *Sessions) changeLocked(a *Entry, sessions, bytes int) {
	a.bytes += bytes
	a.of.Sessions += sessions
	a.of.Bytes += bytes
	w.total.Sessions += sessions
	w.total.Bytes += bytes
	w.rankLocked(a.of)
}

// rankLocked updates the rank of an owner.
func (w *Sessions) rankLocked(of *byOwner) {
	if of.Sessions == 0 {
		w.bySessions.Remove(of)
		w.byBytes.Remove(of)
		return
	}
	w.bySessions.Put(of)
	w.byBytes.Put(of)
}

// exceedLocked removes and returns the sessions that have to end after an increase of an owner's
// amount.
func (w *Sessions) exceedLocked(of *byOwner) (ends []Session) {
	for of.exceeds(w.mostOfOwner) && of.Sessions > 0 {
		ends = append(ends, w.endOldestLocked(of))
	}
	for w.total.exceeds(w.most) && w.total.Sessions > 0 {
		ends = append(ends, w.endOldestLocked(w.largestLocked()))
	}
	return ends
}

// largestLocked returns the sessions of the owner with most sessions, or most bytes, depending on
// the bound that is exceeded.
func (w *Sessions) largestLocked() *byOwner {
	if w.most.Sessions > 0 && w.total.Sessions > w.most.Sessions {
		return w.bySessions.First()
	}
	return w.byBytes.First()
}

func (w *Sessions) endOldestLocked(of *byOwner) Session {
	a := of.oldest.Front().Value.(*Entry)
	w.removeLocked(a)
	return a.session
}

// Remove records that a is no longer suspended.
func (w *Sessions) Remove(a *Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.of != nil {
		w.removeLocked(a)
	}
}

func (w *Sessions) removeLocked(a *Entry) {
	of := a.of
	of.oldest.Remove(a.element)
	w.changeLocked(a, -1, -a.bytes)
	a.of, a.element = nil, nil
	if of.Sessions == 0 {
		delete(w.owners, a.owner)
	}
}

// Look updates the bytes of a, which grow as the application sends, if it is suspended.
func (w *Sessions) Look(a *Entry) {
	if a.session == nil {
		return
	}
	var ends []Session
	held := a.session.Holds()
	w.mu.Lock()
	if a.of != nil {
		w.changeLocked(a, 0, held-a.bytes)
		ends = w.exceedLocked(a.of)
	}
	w.mu.Unlock()
	failAway(ends)
}
