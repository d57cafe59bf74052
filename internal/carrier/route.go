package carrier

import (
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/path"
)

// route learns what the path of the present Wire holds, from marks that go along with what is
// written, and bounds what is in flight by it. It begins with the first mark, so that a session
// that says little has none.
type route struct {
	out *outbox.Outbox       // these are fixed
	now func() time.Duration // the clock of the node

	mu    sync.Mutex
	model path.Model    // guarded by mu, as all below
	asked time.Duration // when a mark was last thought of
}

// seldom is how far marks are apart at most, beside two round trips: a session that says little
// needs none.
const seldom = time.Second

// due reports whether a mark is to be sent: not if enough are on their way, nor after a pause, of
// which it would tell nothing.
func (r *route) due() bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	recent := now-r.asked < seldom+2*r.model.RoundTrip() || r.model.InFlight()
	r.asked = now
	return recent && r.model.Room()
}

func (r *route) alone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.model.InFlight()
}

func (r *route) departs(written uint64, short bool) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.model.Departs(now, written, short)
}

// returns takes the Pong of a mark. If write is true, messages have waited for it, and the caller
// is the writer now.
func (r *route) returns(n uint64) (write bool) {
	now := r.now()
	r.mu.Lock()
	ok := r.model.Returns(now, n)
	b := r.boundLocked()
	r.mu.Unlock()
	return ok && r.out.Open(b)
}

// before returns the number of the last mark before a Ping that was sent at a moment: its Pong
// answers the marks as well. 0: there is none, and never was one of that number.
func (r *route) before(at time.Duration) (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model.Before(at)
}

// overdue reports whether the oldest mark should be back: over this path, and over one as slow as
// may be. Here it is if there is none.
func (r *route) overdue(now, grace time.Duration) (here, anywhere bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	took, ahead := r.model.Waited(now)
	return isLong(&r.model, took) || !r.model.InFlight(), late(took, grace, ahead)
}

// isLong reports whether nothing but a peer that does not read explains that a mark has taken so
// long.
func isLong(m *path.Model, took time.Duration) bool { return took > 4*m.RoundTrip()+seldom }

// boundLocked returns how much may be in flight now.
func (r *route) boundLocked() outbox.Bound {
	return outbox.Bound{
		Ceiling: r.model.Read() + uint64(r.model.Limit()),
		Part:    r.model.Part(),
		Spacing: r.model.Spacing(),
		Holds:   uint64(r.model.Holds()),
		Alone:   !r.model.InFlight(),
	}
}
