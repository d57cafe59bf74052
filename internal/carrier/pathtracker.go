package carrier

import (
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/path"
)

// pathTracker measures the capacity of the path of the present Wire by marks between the written
// frames, and limits the bytes in flight accordingly. It is created with the first mark, so a
// session that sends little has none.
type pathTracker struct {
	out *outbox.Outbox       // fixed, as is now
	now func() time.Duration // the clock of the node

	mu    sync.Mutex
	model path.Model    // guarded by mu, as all below
	asked time.Duration // time of the last call of due
}

// seldom is the longest distance between marks, beside two round trips. A session that sends little
// needs no marks.
const seldom = time.Second

// due reports whether to send a mark. It returns false if enough marks are in flight, and after a
// pause, since a mark would measure nothing then.
func (r *pathTracker) due() bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	recent := now-r.asked < seldom+2*r.model.RoundTrip() || r.model.InFlight()
	r.asked = now
	return recent && r.model.Room()
}

func (r *pathTracker) alone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.model.InFlight()
}

func (r *pathTracker) departs(written uint64, short bool) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.model.Departs(now, written, short)
}

// returns processes the Pong of a mark. If write is true, messages have waited for it, and the
// caller has become the writer.
func (r *pathTracker) returns(n uint64) (write bool) {
	now := r.now()
	r.mu.Lock()
	ok := r.model.Returns(now, n)
	b := r.boundLocked()
	r.mu.Unlock()
	return ok && r.out.Open(b)
}

// before returns the number of the last mark before a Ping sent at the given time: the Pong of that
// Ping answers the marks as well. It returns 0, the number of no mark, if there is none.
func (r *pathTracker) before(at time.Duration) (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model.Before(at)
}

// overdue reports whether the oldest mark should have returned: over this path (here), and over the
// slowest permitted path (anywhere). Without marks in flight, here is true.
func (r *pathTracker) overdue(now, grace time.Duration) (here, anywhere bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	took, ahead := r.model.Waited(now)
	return isLong(&r.model, took) || !r.model.InFlight(), late(took, grace, ahead)
}

// isLong reports whether took is so long for a mark that only a peer that does not read explains
// it.
func isLong(m *path.Model, took time.Duration) bool { return took > 4*m.RoundTrip()+seldom }

// boundLocked returns the current limit of bytes in flight.
func (r *pathTracker) boundLocked() outbox.Bound {
	return outbox.Bound{
		Ceiling: r.model.Read() + uint64(r.model.Limit()),
		Part:    r.model.Part(),
		Spacing: r.model.Spacing(),
		Holds:   uint64(r.model.Holds()),
		Alone:   !r.model.InFlight(),
	}
}
