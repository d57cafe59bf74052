package outbox

import "math"

// Marker decides when to send marks: Pings between the written messages that carry the number of
// bytes written before them. Its methods are called with the lock of the Outbox held, and must not
// call the Outbox.
type Marker interface {
	// Due reports whether to send a mark now. It is called about once in Spacing bytes.
	Due() bool

	// Alone reports whether no mark is in flight.
	Alone() bool

	// Departs is called when a mark departs after written bytes. short reports that the queue was
	// empty at some time since the previous mark.
	Departs(written uint64, short bool)
}

// Bound limits the bytes in flight. The zero Bound is no limit.
type Bound struct {
	Ceiling uint64 // messages depart below this total of written bytes; 0: no limit
	Part    int    // bytes of a batch that is not a single message
	Spacing int    // bytes from one mark to the next
	Holds   uint64 // bytes, announced to the peer; see the specification, section 10
	Alone   bool   // no mark is in flight: if messages wait, a mark has to be sent
}

// inflightWindow limits the bytes that were written to the Wire and are not known to be read.
// Controls pass the gate: there are few, and the peer waits for them.
type inflightWindow struct {
	marker Marker // nil: neither marks nor a limit; fixed

	ceiling uint64         // of the Bound
	written uint64         // bytes of the batches taken over the present Wire
	marked  uint64         // value of written at the last call of Due
	spacing uint32         // of the Bound
	pending bool           // the next message is preceded by a mark
	short   bool           // the queue was empty at some time since the latest mark
	count   *inflightCount // nil until there is a Bound: a session that sends little has none
}

// inflightCount is the state of a gate that has a Bound.
type inflightCount struct {
	holds  uint64 // of the Bound
	passed int    // bytes of messages that have passed the gate since the last Bound
	nudged uint64 // value of written at the last Nudge
}

const (
	urgentSize    = 1 << 10 // largest message, in bytes, that may pass the gate
	urgentPassing = 4 << 10 // bytes of all that may pass between the returns of two marks
)

// firstSpacing is the number of bytes written before the first mark.
const firstSpacing = 16 << 10

// allows reports whether messages may depart with a batch of the given size.
func (g *inflightWindow) allows(batch int) bool {
	return g.ceiling == 0 || g.written+uint64(batch) < g.ceiling
}

// passes reports whether m departs although the gate is closed. m is of the highest priority in the
// queue, and lower ones wait. Few small messages pass, so that an urgent call does not wait for the
// next mark to return.
func (g *inflightWindow) passes(m *Message, size int) bool {
	if m.begun || size > urgentSize || g.count.passed+size > urgentPassing {
		return false
	}
	g.count.passed += size
	return true
}

// move sets the limit of bytes in flight.
func (g *inflightWindow) move(b Bound) {
	if g.count == nil {
		g.count = new(inflightCount)
	}
	g.ceiling, g.spacing = b.Ceiling, uint32(min(b.Spacing, math.MaxInt32))
	g.count.holds, g.count.passed = b.Holds, 0
}

// holds returns the capacity of the path, which is announced to the peer; 0: unknown.
func (g *inflightWindow) holds() uint64 {
	if g.count == nil {
		return 0
	}
	return g.count.holds
}

// due reports whether the next message is preceded by a mark.
func (g *inflightWindow) due() bool {
	spacing := g.spacing
	if g.ceiling == 0 {
		spacing = firstSpacing
	}
	switch {
	case g.marker == nil || g.written-g.marked < uint64(spacing):
		return false
	case spacing == 0 && !g.alone():
		return false // a mark for each small urgent message would never leave none in flight
	}
	g.marked = g.written
	return g.marker.Due()
}

// alone reports whether no mark is in flight, so that nothing would open the gate.
func (g *inflightWindow) alone() bool { return g.marker.Alone() }

// took records that a batch of the given bytes was taken. marked reports that it began with a mark,
// and waiting that messages remain queued.
func (g *inflightWindow) took(bytes int, marked, waiting bool) {
	if marked {
		g.marker.Departs(g.written, g.short)
		g.short = false
	}
	g.short = g.short || !waiting
	g.written += uint64(bytes)
}

// reset begins anew over another Wire.
func (g *inflightWindow) reset() { *g = inflightWindow{marker: g.marker} }

// Mark enables marks, which m controls. It is called before any other method.
func (o *Outbox) Mark(m Marker) { o.window.marker = m }

// Open sets the limit of bytes in flight. If write is true, messages have waited for it, and the
// caller has become the writer.
func (o *Outbox) Open(b Bound) (write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.window.move(b)
	o.batch.most = batchSize
	if b.Part > 0 {
		o.batch.most = int32(min(b.Part, batchSize))
	}
	return (b.Alone || o.window.allows(o.batch.size())) && o.writer.open()
}

// Nudge permits one more part if messages wait at the gate and none has departed since the last
// call: then the Wire decides. So a peer that answers no marks does not block this side for ever.
// If late is true, the gate stays open until a mark returns. write is as for Open.
func (o *Outbox) Nudge(late bool) (write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := &o.window
	if g.ceiling == 0 {
		return false
	}
	still := g.count.nudged == g.written
	g.count.nudged = g.written
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

// InFlight returns the bytes written over the present Wire, and whether messages wait at the gate.
func (o *Outbox) InFlight() (written uint64, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.window.written, o.writer.current() == shut
}
