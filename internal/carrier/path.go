package carrier

import (
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/path"
)

// Path is what is known of the path that the present Wire takes.
type Path struct {
	RoundTrip time.Duration // the smallest of the last seconds; 0: unknown
	Rate      float64       // bytes a second that it delivers; 0: unknown
	Limit     int           // bytes that may be in flight; 0: as many as the Wire takes
	InFlight  int           // bytes that are: written, and not known to have been read
	Full      bool          // messages wait until more may be
	Late      bool          // and have waited for long: the peer does not read
}

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

// seldom is how far marks are apart at most: a session that says little needs none.
const seldom = time.Second

// marker is a Carrier as its Outbox sees it.
type marker Carrier

// Due implements [outbox.Marker].
func (m *marker) Due() bool {
	r := m.route.Load()
	if r == nil {
		r = &route{out: m.out, now: m.Now}
		m.route.Store(r)
	}
	return r.due()
}

// Alone implements [outbox.Marker].
func (m *marker) Alone() bool { return m.route.Load().alone() }

// Departs implements [outbox.Marker].
func (m *marker) Departs(written uint64, short bool) { m.route.Load().departs(written, short) }

// due reports whether a mark is to be sent: not if enough are on their way, nor after a pause, of
// which it would tell nothing.
func (r *route) due() bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	recent := now-r.asked < seldom || r.model.InFlight()
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

// nudge lets messages go on that wait for marks which do not come back: a little, and after the
// time of silence all of them, so that what is said of a peer that takes nothing holds.
func (c *Carrier) nudge(now time.Duration) {
	if r := c.route.Load(); r != nil && c.out.Nudge(r.waited(now) >= c.grace()) {
		c.writer.write()
	}
}

// waited returns for how long the oldest mark has been on its way.
func (r *route) waited(now time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model.Waited(now)
}

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

// Path returns what is known of the path.
func (c *Carrier) Path() Path {
	waits := c.meter.writing.Load() && c.out.Waiting() > 0
	p := Path{RoundTrip: time.Duration(c.live.trip.Load()), Full: waits}
	r := c.route.Load()
	if r == nil {
		return p
	}
	written, full := c.out.InFlight()
	now := c.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.model
	if trip := m.RoundTrip(); trip > 0 {
		p.RoundTrip = trip
	}
	p.Rate, p.Limit, p.Full = m.Rate(), m.Limit(), full || waits
	p.InFlight = int(written - min(m.Read(), written))
	p.Late = full && m.Waited(now) > 4*m.RoundTrip()+seldom
	return p
}
