package asterisque

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// openRoom is the room for Opens, as the side sees it that receives them: see [limits.Opens], and
// for the sender openCredit. Calls within calls have room of their own. It is guarded by the lock
// of its dispatcher.
type openRoom struct {
	owner *owner // fixed

	opens   limits.Opens
	nested  int32 // calls within calls that are here
	urged   int32 // calls to which a worker is lent because one of those waits for their end
	inner   int   // what those cost that are within calls
	answers int   // bytes that answers to them hold, which wait to leave
}

var errOpensWindow = codec.ErrWindow.Withf("more calls than there is room for")

// arrive counts an Open, and returns why it has to be refused if it has. all are the places of the
// node for calls within calls.
func (r *openRoom) arrive(p *limits.Plan, all *reserve, cost uint64, nested bool) *Abort {
	switch {
	case !nested:
		if !r.opens.Arrive(cost) {
			return errOpensWindow
		}
		return nil
	case r.fullOf(p), p.Nested > 0 && r.inner+int(cost) > p.Nested:
		return codec.ErrOverloaded.Withf("%d calls run within calls here, which cost %d bytes, and %d for whose end such calls wait, and there is no room for more", r.nested, r.inner, r.urged)
	case r.answers > p.Room:
		return codec.ErrOverloaded.Withf("answers to calls within calls hold %d bytes here, and the peer does not read them", r.answers)
	case !all.enter(r.owner):
		return codec.ErrOverloaded.Withf("calls within calls of all sessions hold the places for them here")
	}
	r.nested++
	r.inner += int(cost)
	return nil
}

// urge counts a call for whose end one within another call waits: it is lent a worker as that is,
// and takes a place as that does. It returns why there is none for it.
func (r *openRoom) urge(p *limits.Plan, all *reserve) *Abort {
	if r.fullOf(p) || !all.enter(r.owner) {
		return codec.ErrOverloaded.Withf("calls within calls, and those for whose end they wait, hold all places for them here")
	}
	r.urged++
	return nil
}

// urgeNoMore gives the place of such a call back.
func (r *openRoom) urgeNoMore(all *reserve) {
	all.leave(r.owner)
	r.urged--
}

// fullOf reports whether calls that are lent workers have all places of the session.
func (r *openRoom) fullOf(p *limits.Plan) bool {
	return p.NestedCalls > 0 && int(r.nested+r.urged) >= p.NestedCalls
}

// fits reports whether Opens were promised that cost so much together and have not arrived, among
// the others or within calls. The maker of a nested call that it has given up counts that no more,
// though its function may still run here: so all of the room for nested calls may be on its way.
func (r *openRoom) fits(p *limits.Plan, cost uint64) bool {
	nested := uint64(p.Nested)
	return nested == 0 || cost <= nested || r.opens.Fits(cost-nested)
}

// giveBack returns the room of an Open that nobody needs any more.
func (r *openRoom) giveBack(all *reserve, cost uint64, nested bool) {
	if !nested {
		r.opens.Return(cost)
		return
	}
	all.leave(r.owner)
	r.nested--
	r.inner -= int(cost)
}

// reserve bounds how many calls within calls a node runs for all its peers together. One owner may
// have as many as are left, so that there is always something left for another (dynamic thresholds,
// as for windows).
type reserve struct {
	owners *owners // fixed, as most
	most   int64
	held   atomic.Int64
}

// enter takes a place for a call of w, or reports that there is none.
func (r *reserve) enter(w *owner) bool {
	own := w.nested.Add(1)
	if own+r.held.Add(1) <= r.most {
		return true
	}
	r.leave(w)
	return false
}

// leave gives a place back. An owner with places is known as long as it has them.
func (r *reserve) leave(w *owner) {
	r.held.Add(-1)
	if w.nested.Add(-1) == 0 {
		r.owners.forget(w)
	}
}
