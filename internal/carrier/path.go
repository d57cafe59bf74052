package carrier

import "time"

// Path contains the measurements of the path of the present Wire.
type Path struct {
	RoundTrip time.Duration // the smallest one of the last seconds; 0: unknown
	Rate      float64       // delivered bytes per second; 0: unknown
	Limit     int           // bytes that may be in flight; 0: no limit but that of the Wire
	InFlight  int           // bytes that were written and are not known to have been read
	Full      bool          // messages wait for room in flight
	Late      bool          // messages have waited for long: the peer does not read
}

// marker is a Carrier, in the view of its Outbox.
type marker carrierBase

// Due implements [outbox.Marker].
func (m *marker) Due() bool {
	r := m.route.Load()
	if r == nil {
		r = &pathTracker{out: m.out, now: m.Now}
		m.route.Store(r)
	}
	return r.due()
}

// Alone implements [outbox.Marker].
func (m *marker) Alone() bool { return m.route.Load().alone() }

// Departs implements [outbox.Marker].
func (m *marker) Departs(written uint64, short bool) { m.route.Load().departs(written, short) }

// path returns the measurements of the path. trip is the round trip to report if marks have not
// measured one.
func (b *carrierBase) path(trip time.Duration) Path {
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
