package asterisque

import (
	"container/list"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/ranking"
)

// aways are the sessions of a node, of those that peers have begun, that have lost their Wire and
// wait for another one. They are bounded for each owner and in all, in number and in bytes: when
// there are too many, the oldest one ends of the owner who has most.
type aways struct {
	most, mostOfOwner amountAway // fixed; 0: any number

	mu     sync.Mutex
	total  amountAway             // guarded by mu, as all below
	owners map[*owner]*ownersAway // those who have some

	// the same owners; the first one has most, and is asked for by each session that is too many,
	// while there may be tens of thousands
	bySessions, byBytes ranking.Ranking[ownersAway]
}

// amountAway is how many sessions are away, and the bytes that they hold.
type amountAway struct{ sessions, bytes int }

// exceeds reports whether a is more than most.
func (a amountAway) exceeds(most amountAway) bool {
	return most.sessions > 0 && a.sessions > most.sessions || most.bytes > 0 && a.bytes > most.bytes
}

// ownersAway are the sessions of one owner.
type ownersAway struct {
	oldest list.List // of *away
	amountAway
	bySessions, byBytes ranking.Place
}

// away is one of them.
type away struct {
	s     *Session
	of    *ownersAway
	place *list.Element
	bytes int
}

// configure sets what follows from the options.
func (w *aways) configure(c *config) {
	w.most = amountAway{(c.sessions + 3) / 4, c.budget / 4}
	w.mostOfOwner = amountAway{c.perAddress, c.budget / 8}
	w.bySessions = ranking.New(
		func(a, b *ownersAway) bool { return a.sessions > b.sessions },
		func(of *ownersAway) *ranking.Place { return &of.bySessions })
	w.byBytes = ranking.New(
		func(a, b *ownersAway) bool { return a.bytes > b.bytes },
		func(of *ownersAway) *ranking.Place { return &of.byBytes })
}

// add notes that s is away. Others may have to end for it.
func (w *aways) add(s *Session) {
	if s.table.odd == 0 {
		return // this side decides itself how many it dials
	}
	w.mu.Lock()
	of := w.owners[s.owner]
	if of == nil {
		if w.owners == nil {
			w.owners = make(map[*owner]*ownersAway)
		}
		of = new(ownersAway)
		w.owners[s.owner] = of
	}
	a := &away{s: s, of: of}
	a.place = of.oldest.PushBack(a)
	s.res.away = a
	w.changeLocked(a, 1, s.holds())
	ends := w.exceedLocked(of)
	w.mu.Unlock()
	for _, s := range ends {
		s.fail(errTooManyAway)
	}
}

var errTooManyAway = codec.ErrUnavailable.Withf("too many sessions wait for their peers, and of this one's peer it has waited longest: see Resume.For")

// changeLocked adds to what is counted for a.
func (w *aways) changeLocked(a *away, sessions, bytes int) {
	a.bytes += bytes
	a.of.sessions += sessions
	a.of.bytes += bytes
	w.total.sessions += sessions
	w.total.bytes += bytes
	w.rankLocked(a.of)
}

// rankLocked is called when what an owner has away has changed.
func (w *aways) rankLocked(of *ownersAway) {
	if of.sessions == 0 {
		w.bySessions.Remove(of)
		w.byBytes.Remove(of)
		return
	}
	w.bySessions.Put(of)
	w.byBytes.Put(of)
}

// exceedLocked returns the sessions that have to end because of what was added to those of an
// owner.
func (w *aways) exceedLocked(of *ownersAway) (ends []*Session) {
	for of.exceeds(w.mostOfOwner) && of.sessions > 0 {
		ends = append(ends, w.endOldestLocked(of))
	}
	for w.total.exceeds(w.most) && w.total.sessions > 0 {
		ends = append(ends, w.endOldestLocked(w.largestLocked()))
	}
	return ends
}

// largestLocked returns the sessions of who has most: of what there is too much.
func (w *aways) largestLocked() *ownersAway {
	if w.most.sessions > 0 && w.total.sessions > w.most.sessions {
		return w.bySessions.First()
	}
	return w.byBytes.First()
}

func (w *aways) endOldestLocked(of *ownersAway) *Session {
	a := of.oldest.Front().Value.(*away)
	w.removeLocked(a)
	return a.s
}

// remove is called when s is away no more.
func (w *aways) remove(s *Session) {
	if s.table.odd == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.res.away != nil {
		w.removeLocked(s.res.away)
	}
}

func (w *aways) removeLocked(a *away) {
	a.of.oldest.Remove(a.place)
	a.s.res.away = nil
	w.changeLocked(a, -1, -a.bytes)
	if a.of.sessions == 0 {
		delete(w.owners, a.s.owner)
	}
}

// look finds out anew what s holds, which grows with what the application sends, if it is away.
func (w *aways) look(s *Session) {
	if s.table.odd == 0 {
		return
	}
	var ends []*Session
	held := s.holds()
	w.mu.Lock()
	if a := s.res.away; a != nil {
		w.changeLocked(a, 0, held-a.bytes)
		ends = w.exceedLocked(a.of)
	}
	w.mu.Unlock()
	for _, s := range ends {
		s.fail(errTooManyAway)
	}
}

// holds returns how many bytes s holds.
func (s *Session) holds() int {
	return heldSession + s.inbound.Held().Bytes + s.outbound.Held().Bytes + s.calls.held()
}
