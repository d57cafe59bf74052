package outbox

import "math"

// Marker decides about marks: Pings that go along with much that is written, and say how much was
// written before them. Its methods are called with the lock of the Outbox held, and must not call
// the Outbox.
type Marker interface {
	// Due reports whether a mark is to go now. It is asked about once in Spacing bytes.
	Due() bool

	// Alone reports whether no mark is on its way.
	Alone() bool

	// Departs is called when a mark departs behind so many bytes. short says that there was not
	// always something to send since the last one.
	Departs(written uint64, short bool)
}

// Bound is how much may be in flight. The zero Bound is none.
type Bound struct {
	Ceiling uint64 // bytes, of all that are written; what waits departs below it; 0: there is none
	Part    int    // bytes that depart together, unless they are one message
	Spacing int    // bytes from one mark to the next
	Holds   uint64 // bytes, for the peer to know; see the specification, section 10
	Alone   bool   // no mark is on its way: if messages wait, one has to go
}

// gate bounds what is given to the Wire and not known to be read. Controls pass it: there are few,
// and the peer waits for them.
type gate struct {
	marker Marker // nil: there are no marks, and no bound; fixed

	ceiling uint64 // of the Bound
	written uint64 // bytes of the batches that were taken over the present Wire
	marked  uint64 // what was written when a mark was last thought of
	spacing uint32 // of the Bound
	pending bool   // a mark departs with the next message
	short   bool   // since the latest mark departed there was not always something to send
	moved   *moved // nil until there is a Bound: a session that says little has none
}

// moved is what a gate has to remember once there is a Bound.
type moved struct {
	holds  uint64 // of the Bound
	passed int    // bytes of messages that have passed the gate since it was moved
	nudged uint64 // what was written when Nudge was called last
}

const (
	urgentSize    = 1 << 10 // bytes of a message that may pass the gate, and
	urgentPassing = 4 << 10 // of all that do from one mark that comes back to the next
)

// firstSpacing is how many bytes are written before the first mark.
const firstSpacing = 16 << 10

// lets reports whether messages may depart with a batch that holds so many bytes already.
func (g *gate) lets(batch int) bool {
	return g.ceiling == 0 || g.written+uint64(batch) < g.ceiling
}

// passes reports whether m, which is of the highest priority of those that wait, and not alone,
// departs although no more may be in flight. Few small messages do, so that an urgent call does not
// wait until the path has shown what it holds.
func (g *gate) passes(m *Message, size int) bool {
	if m.begun || size > urgentSize || g.moved.passed+size > urgentPassing {
		return false
	}
	g.moved.passed += size
	return true
}

// move sets how much may be in flight.
func (g *gate) move(b Bound) {
	if g.moved == nil {
		g.moved = new(moved)
	}
	g.ceiling, g.spacing = b.Ceiling, uint32(min(b.Spacing, math.MaxInt32))
	g.moved.holds, g.moved.passed = b.Holds, 0
}

// holds returns what the path holds, for the peer to know; 0: unknown.
func (g *gate) holds() uint64 {
	if g.moved == nil {
		return 0
	}
	return g.moved.holds
}

// due reports whether a mark is to depart with the next message.
func (g *gate) due() bool {
	spacing := g.spacing
	if g.ceiling == 0 {
		spacing = firstSpacing
	}
	switch {
	case g.marker == nil || g.written-g.marked < uint64(spacing):
		return false
	case spacing == 0 && !g.alone():
		return false // what is small and urgent would have one each, and none would be alone
	}
	g.marked = g.written
	return g.marker.Due()
}

// alone reports whether no mark is on its way, so that nothing would open the gate.
func (g *gate) alone() bool { return g.marker.Alone() }

// took notes that a batch of so many bytes was taken, which has begun with a mark or not.
func (g *gate) took(bytes int, marked, waiting bool) {
	if marked {
		g.marker.Departs(g.written, g.short)
		g.short = false
	}
	g.short = g.short || !waiting
	g.written += uint64(bytes)
}

// reset begins anew over another Wire.
func (g *gate) reset() { *g = gate{marker: g.marker} }

// Mark lets marks go along with what is written. It is called before everything else.
func (o *Outbox) Mark(m Marker) { o.gate.marker = m }

// Open sets how much may be in flight. If write is true, messages have waited for that, and the
// caller is the writer now.
func (o *Outbox) Open(b Bound) (write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gate.move(b)
	o.batch.most = batchSize
	if b.Part > 0 {
		o.batch.most = int32(min(b.Part, batchSize))
	}
	return (b.Alone || o.gate.lets(o.batch.size())) && o.writer.open()
}

// Nudge lets one part depart more if nothing has departed since it was called last, and messages
// wait until more may be in flight: then the Wire decides. So a peer that answers no marks does not
// stop this side for ever. If late is true, all departs until a mark comes back. write is as for
// Open.
func (o *Outbox) Nudge(late bool) (write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := &o.gate
	if g.ceiling == 0 {
		return false
	}
	still := g.moved.nudged == g.written
	g.moved.nudged = g.written
	switch {
	case late:
		g.ceiling = math.MaxUint64
	case still:
		g.ceiling = max(g.ceiling, g.written+1)
	default:
		return false
	}
	return o.writer.open()
}

// InFlight returns how many bytes were given out over the present Wire, and whether messages wait
// until more may be in flight.
func (o *Outbox) InFlight() (written uint64, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gate.written, o.writer.current() == shut
}
