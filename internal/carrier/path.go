package carrier

import "time"

// Path is what is known of the path that the present Wire takes.
type Path struct {
	RoundTrip time.Duration // the smallest of the last seconds; 0: unknown
	Rate      float64       // bytes a second that it delivers; 0: unknown
	Limit     int           // bytes that may be in flight; 0: as many as the Wire takes
	InFlight  int           // bytes that are: written, and not known to have been read
	Full      bool          // messages wait until more may be
	Late      bool          // and have waited for long: the peer does not read
}

// marker is a Carrier as its Outbox sees it.
type marker base

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

// path returns what is known of the path. Of the round trip, trip is known otherwise.
func (b *base) path(trip time.Duration) Path {
	waits := b.meter.writing.Load() && b.out.Waiting() > 0
	p := Path{RoundTrip: trip, Full: waits}
	r := b.route.Load()
	if r == nil {
		return p
	}
	written, full := b.out.InFlight()
	now := b.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &r.model
	if trip := m.RoundTrip(); trip > 0 {
		p.RoundTrip = trip
	}
	p.Rate, p.Limit, p.Full = m.Rate(), m.Limit(), full || waits
	p.InFlight = int(written - min(m.Read(), written))
	waited, _ := m.Waited(now)
	p.Late = full && isLong(m, waited)
	return p
}
