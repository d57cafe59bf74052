// Package path estimates what the path of a Wire holds: its smallest round trip, and the rate at
// which it delivers. From both follows how much may be in flight, so that queues form on this side,
// where priority reaches, and not in the network.
//
// What it learns from is marks: numbers that the peer sends back as soon as it has read them. A
// mark says how many bytes were written before it, and so its return says how many have been read.
// The estimates are those of BBR (Cardwell et al. 2016): the largest rate of some round trips, and
// the smallest round trip of some seconds, which is looked for with little in flight. There is no
// pacing: marks that return are the clock.
//
// A Model has no clock, no lock, and knows neither messages nor wires.
package path

import "time"

const (
	// What may be in flight, in bytes: at least, at most, also if a peer lies, and before the rate
	// is known.
	least   = 16 << 10
	most    = 1 << 30
	unknown = 128 << 10

	// slack is by how long a mark may be late because of those who send and read, and not of the
	// path. What the path delivers in it may be in flight as well: over a short path the processor
	// bounds the rate, and not this.
	slack = 2 * time.Millisecond

	// fresh is how long the smallest round trip is believed, and freshTrips how many of them it is
	// at least: to look for it costs what the path delivers in some three of them.
	fresh      = 10 * time.Second
	freshTrips = 100

	// A round in which the rate has not grown by a quarter does not grow. After flat such rounds
	// the path is full.
	growth = 1.25
	flat   = 3
)

// fast is a rate, in bytes a second, above which a short path does not leave the machine, or
// hardly. There nothing is gained by looking at it often.
const fast = 256 << 20

// How many times of what the path holds may be in flight.
const (
	starting = 2.0  // while the rate grows
	cruising = 1.25 // so that a path which has grown is noticed
)

// Bounds of what leaves together, in bytes.
const (
	leastPart = 4 << 10
	mostPart  = 64 << 10
)

// Model is what is known of one path. Times are those of one clock, whatever its zero.
type Model struct {
	phase phase
	marks marks
	rates rates

	trip   time.Duration // the smallest round trip; 0: unknown
	tripAt time.Duration // when that was measured
	stray  time.Duration // by how much marks are later than expected
	late   bool          // the latest mark was

	busy   time.Duration // until when the path has to do with what was sent before the latest mark
	sentAt time.Duration // when that left, behind so many bytes
	sent   uint64

	last   uint64 // of the mark that came back last
	lastAt time.Duration
	cutAt  time.Duration // when marks were late twice

	ramp int // so many bytes may be in flight behind a probe: half of it at once, and what is read

	full int     // rounds in a row in which the rate has not grown
	best float64 // the rate from which it has to grow
}

// Departs notes that a mark leaves behind so many bytes, of all that were written. short says that
// there was not always something to send since the last one: then its return says nothing of what
// the path could have delivered.
func (m *Model) Departs(now time.Duration, written uint64, short bool) {
	if m.phase == cruise && m.old(now) {
		m.phase = probe
	}
	m.marks.push(now, written, short, m.queue(now, written))
}

// old reports whether the round trip is to be looked for. That takes one or two of them, and finds
// one behind the queue of a slow path if it is done while the rate grows.
func (m *Model) old(now time.Duration) bool { return now-m.tripAt > max(fresh, freshTrips*m.trip) }

// queue returns how long what departs now waits in the queue before it. What was written since the
// last mark has joined that then, at the earliest. No more than what is in flight can stand there.
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

// Returns notes that the mark behind so many bytes has come back. It reports false if there is no
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

// measure takes a round trip. calm says that hardly anything was in flight when the mark left.
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

// judge learns from a mark that has come back what the path delivers.
func (m *Model) judge(k *mark, now, trip time.Duration) {
	rate := k.rate(now)
	if m.isLate(k, trip) && m.phase == cruise && rate > 0 {
		m.cut(rate, k.written, now)
	} else if rate > 0 && k.at >= m.cutAt {
		m.grow(rate, k, trip)
	}
	m.last, m.lastAt = k.written, now
}

// cut is called when marks are late: has the path less to give, or is it longer? Until it has shown
// that, it has what came between the latest two, but at least half of what the latest one tells.
// Those that left before tell of what was.
func (m *Model) cut(rate float64, written uint64, now time.Duration) {
	if took := (now - m.lastAt).Seconds(); took > 0 {
		rate = min(rate, max(rate/2, float64(written-m.last)/took))
	}
	m.rates.reset(rate)
	m.phase, m.late, m.cutAt = probe, false, now
}

// grow takes a rate that a mark has told. Where there was too little to send it tells of the path
// only if some stood in queues all the same, or if it is more than what is known.
func (m *Model) grow(rate float64, k *mark, trip time.Duration) {
	short := k.short && k.ahead < m.queues()
	if short && rate <= m.rates.most() {
		return
	}
	if m.rates.add(rate, k) && m.phase == start && !short {
		m.grown(trip)
	}
}

// isLate reports whether the mark is late, and the one before it was: later than the queue that
// this side has made, what was in flight and the jitter of the path explain.
func (m *Model) isLate(k *mark, trip time.Duration) (twice bool) {
	expected := m.trip + k.wait
	if trip < expected {
		m.busy += (trip - expected) / 8 // the queue is shorter than it should be
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

// queues returns how many bytes in flight are more than the path holds, so that some stand in
// queues: then it is full, whatever the sender could do.
func (m *Model) queues() uint64 { return uint64(m.hold(cruising)) + mostPart }

// grown is called after each round trip until the path is full: the rate grows no more, and what is
// sent waits in queues.
func (m *Model) grown(trip time.Duration) {
	if r := m.rates.most(); r >= m.best*growth {
		m.best, m.full = r, 0
		return
	}
	if m.full++; m.full >= flat || trip > m.trip*5/4+2*m.stray+slack {
		m.phase = probe
	}
}

// Limit returns how many bytes may be in flight: written, and not known to have been read.
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

// near reports whether the path is short: its first kilobytes were there at once, and back.
func (m *Model) near() bool { return 0 < m.trip && m.trip < slack }

// atFirst returns how many bytes may be in flight while the rate is unknown. Over a short path they
// are more: what is known to have been read is behind what has been.
func (m *Model) atFirst() int {
	if m.near() {
		return 4 * unknown
	}
	return unknown
}

// hold returns how many bytes the path holds, times gain, and what it delivers in slack and while
// marks stray.
func (m *Model) hold(gain float64) int {
	rate := m.rates.most()
	spare := slack + min(2*m.stray, m.trip/2)
	if m.near() && rate > fast {
		spare += 3 * slack
	}
	return int(min(rate*(gain*m.trip.Seconds()+spare.Seconds()), most))
}

// Part returns how many bytes may leave together: an eighth of what may be in flight. Over a short
// path they are more as long as its rate is unknown.
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

// Spacing returns after how many bytes the next mark is to leave: some eight for what may be in
// flight. Over a short path there are two: a mark costs as much as anywhere, and tells less. With
// less than two, nothing would be in flight while the mark behind all of it comes back.
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

// Before returns behind how many bytes the latest mark left that did so before a moment, 0 if there
// is none on its way.
func (m *Model) Before(at time.Duration) (written uint64) { return m.marks.before(at) }

// Room reports whether one more mark may be on its way.
func (m *Model) Room() bool { return m.marks.len < len(m.marks.list) }

// InFlight reports whether a mark is on its way.
func (m *Model) InFlight() bool { return m.marks.len > 0 }

// Read returns how many of the bytes that were written are known to have been read.
func (m *Model) Read() uint64 { return m.marks.read }

// RoundTrip returns the smallest round trip that is believed, 0 if none is known.
func (m *Model) RoundTrip() time.Duration { return m.trip }

// Rate returns what the path delivers, in bytes a second, 0 if that is unknown.
func (m *Model) Rate() float64 { return m.rates.most() }

// Holds returns how many bytes the path holds: what it delivers in a round trip. While its rate
// grows they are twice as many, so that what the peer allows does not hold that up.
func (m *Model) Holds() int {
	n := m.rates.most() * m.trip.Seconds()
	if m.phase == start {
		n *= starting
	}
	return int(min(n, most))
}

// Waited returns for how long the oldest mark has been on its way, and how many bytes were when it
// left.
func (m *Model) Waited(now time.Duration) (took time.Duration, ahead uint64) {
	if m.marks.len == 0 {
		return 0, 0
	}
	k := m.marks.at(0)
	return now - k.at, k.ahead
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
