// Package path estimates the capacity of the path of a Wire: its smallest round trip, and its
// delivery rate. They determine how many bytes may be in flight, so that queues form on this side,
// where messages are ordered by priority, and not in the network.
//
// The measurements come from marks: numbers that the peer sends back as soon as it has read them. A
// mark carries the number of bytes written before it, so its return proves that these have been
// read. The estimates are those of BBR (Cardwell et al. 2016): the largest rate of some round
// trips, and the smallest round trip of some seconds, which is measured with few bytes in flight.
// There is no pacing: returning marks are the clock.
//
// A Model has no clock and no lock, and knows neither messages nor wires.
package path

import "time"

const (
	// Limits of the bytes in flight: the smallest; the largest, even for a peer that reports false
	// numbers; and the one before the rate is known.
	least   = 16 << 10
	most    = 1 << 30
	unknown = 128 << 10

	// slack is the delay of a mark that sender and reader, and not the path, may cause. The bytes
	// delivered in that time may be in flight as well: over a short path the processor bounds the
	// rate, and not this limit.
	slack = 2 * time.Millisecond

	// fresh is how long the smallest round trip is valid, and freshTrips the minimum of that time
	// in round trips. A new measurement costs about the bytes that the path delivers in three round
	// trips.
	fresh      = 10 * time.Second
	freshTrips = 100

	// A rate that has not grown by a quarter in a round does not grow. After flat such rounds the
	// path is full.
	growth = 1.25
	flat   = 3
)

// fast is a rate, in bytes per second, above which a short path hardly leaves the machine. Frequent
// measurements gain nothing there.
const fast = 256 << 20

// Factors for the capacity of the path that give the bytes in flight.
const (
	starting = 2.0  // while the rate grows
	cruising = 1.25 // to notice a larger capacity
)

// Bounds for the size of a batch or part, in bytes.
const (
	leastPart = 4 << 10
	mostPart  = 64 << 10
)

// Model is the estimate for one path. All times are those of one clock with any zero.
type Model struct {
	phase phase
	marks marks
	rates rates

	trip   time.Duration // the smallest round trip; 0: unknown
	tripAt time.Duration // when trip was measured
	stray  time.Duration // average excess delay of marks
	late   bool          // the latest mark was late

	busy   time.Duration // when the path has transferred the bytes sent before the latest mark
	sentAt time.Duration // when that mark was sent, after the bytes in sent
	sent   uint64

	last   uint64 // written bytes of the latest returned mark
	lastAt time.Duration
	cutAt  time.Duration // when marks were late twice

	ramp int // limit of the bytes in flight after a probe: half the capacity, plus bytes read

	full int     // consecutive rounds without a growing rate
	best float64 // the rate against which growth is measured
}

// Departs records that a mark is sent after written bytes in all. short reports that the sender had
// nothing to send at some time since the previous mark. Then the return of the mark does not
// measure what the path could have delivered.
func (m *Model) Departs(now time.Duration, written uint64, short bool) {
	if m.phase == cruise && m.old(now) {
		m.phase = probe
	}
	m.marks.push(now, written, short, m.queue(now, written))
}

// old reports whether the round trip is to be measured again. The measurement takes one or two
// round trips. During the growth of the rate, it finds a round trip even behind the queue of a slow
// path.
func (m *Model) old(now time.Duration) bool { return now-m.tripAt > max(fresh, freshTrips*m.trip) }

// queue returns the expected wait in the queue of bytes sent now. Bytes written since the last mark
// joined the queue at that time at the earliest. The queue is never longer than the bytes in
// flight.
func (m *Model) queue(now time.Duration, written uint64) time.Duration {
	rate := m.rates.most()
	if rate == 0 {
		return 0
	}
	m.busy = max(m.busy, m.sentAt) + seconds(float64(written-m.sent)/rate)
	m.busy = min(m.busy, now+seconds(float64(written-m.marks.read)/rate))
	m.sentAt, m.sent = now, written
	return max(m.busy-now, 0)
}

// Returns records that the mark after written bytes has returned. It returns false if there is no
// such mark.
func (m *Model) Returns(now time.Duration, written uint64) (ok bool) {
	before := m.marks.read
	k, ok := m.marks.pop(now, written)
	if !ok {
		return false
	}
	m.ramp = int(min(uint64(m.ramp)+written-before, most))
	trip := max(now-k.at, 1)
	m.measure(now, trip, k.ahead < leastPart)
	m.judge(&k, now, trip)
	return true
}

// measure processes a round trip. calm reports that hardly any bytes were in flight when the mark
// was sent.
func (m *Model) measure(now, trip time.Duration, calm bool) {
	if calm && m.phase == probe {
		m.phase = cruise
		m.trip, m.tripAt = trip, now
		m.ramp = m.hold(1) / 2
	}
	old := m.phase == start && m.old(now)
	if m.trip == 0 || trip <= m.trip || old {
		m.trip, m.tripAt = trip, now
	}
}

// judge updates the rate after the return of a mark.
func (m *Model) judge(k *mark, now, trip time.Duration) {
	rate := k.rate(now)
	if m.isLate(k, trip) && m.phase == cruise && rate > 0 {
		m.cut(rate, k.written, now)
	} else if rate > 0 && k.at >= m.cutAt {
		m.grow(rate, k, trip)
	}
	m.last, m.lastAt = k.written, now
}

// cut is called when marks are late: the path has become slower or longer. Until new marks show
// which, the rate is that between the latest two marks, but at least half the rate of the latest
// one. Marks sent before describe the former path.
func (m *Model) cut(rate float64, written uint64, now time.Duration) {
	if took := (now - m.lastAt).Seconds(); took > 0 {
		rate = min(rate, max(rate/2, float64(written-m.last)/took))
	}
	m.rates.reset(rate)
	m.phase, m.late, m.cutAt = probe, false, now
}

// grow processes the rate that a mark has measured. If there was too little to send, the rate
// counts only if bytes stood in queues nevertheless, or if it exceeds the known rate.
func (m *Model) grow(rate float64, k *mark, trip time.Duration) {
	short := k.short && k.ahead < m.queues()
	if short && rate <= m.rates.most() {
		return
	}
	if m.rates.add(rate, k) && m.phase == start && !short {
		m.grown(trip)
	}
}

// isLate reports whether the mark and the one before it are late: later than the queue of this
// side, the bytes in flight and the jitter of the path explain.
func (m *Model) isLate(k *mark, trip time.Duration) (twice bool) {
	expected := m.trip + k.wait
	if trip < expected {
		m.busy += (trip - expected) / 8 // the queue is shorter than expected
	}
	if rate := m.rates.most(); rate > 0 {
		expected = max(expected, seconds(float64(k.ahead)/rate))
	}
	over := max(trip-expected, 0)
	was := m.late
	m.late = over > expected/8+2*m.stray+slack
	m.stray += (over - m.stray) / 8
	return was && m.late
}

// queues returns a number of bytes in flight that exceeds the capacity of the path, so that some
// stand in queues. Then the path is full, even if the sender had nothing to send at times.
func (m *Model) queues() uint64 { return uint64(m.hold(cruising)) + mostPart }

// grown is called after each round trip until the path is full: the rate grows no more, and sent
// bytes wait in queues.
func (m *Model) grown(trip time.Duration) {
	if r := m.rates.most(); r >= m.best*growth {
		m.best, m.full = r, 0
		return
	}
	if m.full++; m.full >= flat || trip > m.trip*5/4+2*m.stray+slack {
		m.phase = probe
	}
}

// Limit returns the number of bytes that may be in flight: written, and not known to have been
// read.
func (m *Model) Limit() int {
	switch m.phase {
	case start:
		return max(m.atFirst(), m.hold(starting))
	case probe:
		return leastPart
	default:
		return max(least, min(m.hold(cruising), m.ramp))
	}
}

// near reports whether the path is short: its first kilobytes were acknowledged at once.
func (m *Model) near() bool { return 0 < m.trip && m.trip < slack }

// atFirst returns the bytes that may be in flight while the rate is unknown. The number is larger
// for a short path, where the reports of bytes read lag furthest behind.
func (m *Model) atFirst() int {
	if m.near() {
		return 4 * unknown
	}
	return unknown
}

// hold returns the capacity of the path in bytes, times gain, plus the bytes it delivers during
// slack and the excess delay of marks.
func (m *Model) hold(gain float64) int {
	rate := m.rates.most()
	spare := slack + min(2*m.stray, m.trip/2)
	if m.near() && rate > fast {
		spare += 3 * slack
	}
	return int(min(rate*(gain*m.trip.Seconds()+spare.Seconds()), most))
}

// Part returns the limit of bytes sent together: an eighth of the bytes in flight. For a short path
// it is larger while the rate is unknown.
func (m *Model) Part() int {
	if m.phase == start && m.near() {
		return mostPart
	}
	limit := m.Limit()
	if m.phase > start {
		limit = m.hold(cruising)
	}
	return min(max(limit/8, leastPart), mostPart)
}

// Spacing returns the bytes until the next mark: about eight marks share the bytes in flight. On a
// short path there are two marks: a mark costs as much as on other paths, and measures less. With
// fewer than two, no byte would be in flight while the mark after all bytes returns.
func (m *Model) Spacing() int {
	switch {
	case m.phase == probe && m.marks.len == 0:
		return 0
	case m.near():
		return max(m.Limit()/2, leastPart)
	default:
		return max(m.Limit()/8, leastPart)
	}
}

// Before returns the written bytes of the latest mark in flight sent before the given time, or 0 if
// there is none.
func (m *Model) Before(at time.Duration) (written uint64) { return m.marks.before(at) }

// Room reports whether a further mark may be in flight.
func (m *Model) Room() bool { return m.marks.len < len(m.marks.list) }

// InFlight reports whether a mark is in flight.
func (m *Model) InFlight() bool { return m.marks.len > 0 }

// Read returns the number of written bytes that are known to have been read.
func (m *Model) Read() uint64 { return m.marks.read }

// RoundTrip returns the smallest valid round trip, or 0 if none is known.
func (m *Model) RoundTrip() time.Duration { return m.trip }

// Rate returns the delivery rate of the path in bytes per second, or 0 if it is unknown.
func (m *Model) Rate() float64 { return m.rates.most() }

// Holds returns the capacity of the path in bytes: the bytes it delivers in a round trip. While the
// rate grows, Holds returns twice as many, so that the window of the peer does not limit the
// growth.
func (m *Model) Holds() int {
	n := m.rates.most() * m.trip.Seconds()
	if m.phase == start {
		n *= starting
	}
	return int(min(n, most))
}

// Waited returns the time for which the oldest mark has been in flight, and the bytes in flight
// before it when it was sent.
func (m *Model) Waited(now time.Duration) (took time.Duration, ahead uint64) {
	if m.marks.len == 0 {
		return 0, 0
	}
	k := m.marks.at(0)
	return now - k.at, k.ahead
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
