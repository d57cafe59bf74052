package asterisque

import (
	"container/list"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/ranking"
)

// suspendedSessions are the suspended sessions of a node that its peers have begun: those that have
// lost their Wire and wait for another one. Their number and their bytes are bounded, for each
// owner and in all. Above a bound, the node ends the oldest session of the owner that holds the
// most.
type suspendedSessions struct {
	most, mostOfOwner suspendedAmount // fixed; 0: any number

	mu     sync.Mutex
	total  suspendedAmount                    // guarded by mu, as all below
	owners map[*quota.Owner]*suspendedByOwner // owners with suspended sessions

	// the same owners; the owner with most is the first, and is needed for each session above the
	// bound, while there may be tens of thousands
	bySessions, byBytes ranking.Ranking[suspendedByOwner]
}

// suspendedAmount is a number of suspended sessions, and the bytes that they hold.
type suspendedAmount struct{ sessions, bytes int }

// exceeds reports whether a is more than most.
func (a suspendedAmount) exceeds(most suspendedAmount) bool {
	return most.sessions > 0 && a.sessions > most.sessions || most.bytes > 0 && a.bytes > most.bytes
}

// suspendedByOwner are the suspended sessions of one owner.
type suspendedByOwner struct {
	oldest list.List // of *suspended
	suspendedAmount
	bySessions, byBytes ranking.Place
}

// suspended is the list entry of a session that is, or may become, suspended.
type suspended struct {
	// fixed, as owner; nil if this side has dialled, which bounds the number itself
	session suspendableSession
	owner   *quota.Owner

	of      *suspendedByOwner // nil: not suspended; guarded by the list
	element *list.Element
	bytes   int
}

// suspendableSession is the interface of a session for suspendedSessions.
type suspendableSession interface {
	// holds returns the number of bytes that the session holds.
	holds() int

	// fail ends the session.
	fail(*Abort)
}

// init prepares w for a node.
func (w *suspendedSessions) init(most, mostOfOwner suspendedAmount) {
	w.most, w.mostOfOwner = most, mostOfOwner
	w.owners = make(map[*quota.Owner]*suspendedByOwner)
	w.bySessions = ranking.New(
		func(a, b *suspendedByOwner) bool { return a.sessions > b.sessions },
		func(of *suspendedByOwner) *ranking.Place { return &of.bySessions })
	w.byBytes = ranking.New(
		func(a, b *suspendedByOwner) bool { return a.bytes > b.bytes },
		func(of *suspendedByOwner) *ranking.Place { return &of.byBytes })
}

// add records that a is suspended. It may end other sessions.
func (w *suspendedSessions) add(a *suspended) {
	if a.session == nil {
		return
	}
	held := a.session.holds()
	w.mu.Lock()
	of := w.owners[a.owner]
	if of == nil {
		of = new(suspendedByOwner)
		w.owners[a.owner] = of
	}
	a.of, a.element = of, of.oldest.PushBack(a)
	w.changeLocked(a, 1, held)
	ends := w.exceedLocked(of)
	w.mu.Unlock()
	failAway(ends)
}

func failAway(ends []suspendableSession) {
	for _, s := range ends {
		s.fail(errTooManyAway)
	}
}

var errTooManyAway = codec.ErrUnavailable.Withf("too many sessions wait for their peers, and of this one's peer it has waited longest: see Resume.For")

// changeLocked adds to the amounts of a and its owner.
func (w *suspendedSessions) changeLocked(a *suspended, sessions, bytes int) {
	a.bytes += bytes
	a.of.sessions += sessions
	a.of.bytes += bytes
	w.total.sessions += sessions
	w.total.bytes += bytes
	w.rankLocked(a.of)
}

// rankLocked updates the rank of an owner.
func (w *suspendedSessions) rankLocked(of *suspendedByOwner) {
	if of.sessions == 0 {
		w.bySessions.Remove(of)
		w.byBytes.Remove(of)
		return
	}
	w.bySessions.Put(of)
	w.byBytes.Put(of)
}

// exceedLocked removes and returns the sessions that have to end after an increase of an owner's
// amount.
func (w *suspendedSessions) exceedLocked(of *suspendedByOwner) (ends []suspendableSession) {
	for of.exceeds(w.mostOfOwner) && of.sessions > 0 {
		ends = append(ends, w.endOldestLocked(of))
	}
	for w.total.exceeds(w.most) && w.total.sessions > 0 {
		ends = append(ends, w.endOldestLocked(w.largestLocked()))
	}
	return ends
}

// largestLocked returns the sessions of the owner with most sessions, or most bytes, depending on
// the bound that is exceeded.
func (w *suspendedSessions) largestLocked() *suspendedByOwner {
	if w.most.sessions > 0 && w.total.sessions > w.most.sessions {
		return w.bySessions.First()
	}
	return w.byBytes.First()
}

func (w *suspendedSessions) endOldestLocked(of *suspendedByOwner) suspendableSession {
	a := of.oldest.Front().Value.(*suspended)
	w.removeLocked(a)
	return a.session
}

// remove records that a is no longer suspended.
func (w *suspendedSessions) remove(a *suspended) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.of != nil {
		w.removeLocked(a)
	}
}

func (w *suspendedSessions) removeLocked(a *suspended) {
	of := a.of
	of.oldest.Remove(a.element)
	w.changeLocked(a, -1, -a.bytes)
	a.of, a.element = nil, nil
	if of.sessions == 0 {
		delete(w.owners, a.owner)
	}
}

// look updates the bytes of a, which grow as the application sends, if it is suspended.
func (w *suspendedSessions) look(a *suspended) {
	if a.session == nil {
		return
	}
	var ends []suspendableSession
	held := a.session.holds()
	w.mu.Lock()
	if a.of != nil {
		w.changeLocked(a, 0, held-a.bytes)
		ends = w.exceedLocked(a.of)
	}
	w.mu.Unlock()
	failAway(ends)
}
