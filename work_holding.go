package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// What running calls hold besides their number: parameters and what they become when they are
// decoded, windows, answers that wait to leave, and Blocks that nobody waits for any more. A call
// is taken only when there is room for what it brings.

// A call has the last eighth of the room for running calls if its parameters have so many bytes at
// most, and become so many: large ones that sleep do not stop small ones.
const (
	smallParams = 4 << 10
	smallValue  = 16 << 10
)

func (c *incoming) small() bool { return c.size <= smallParams && c.becomes.bytes() <= smallValue }

// weight returns what c holds while it runs: its parameters, and what they become.
func (c *incoming) weight() int { return c.heldParams() + c.becomes.bytes() }

// holdLocked counts bytes more that running calls hold.
func (d *dispatcher) holdLocked(bytes int) {
	d.holding += bytes
	d.part.Tell(d.holding)
}

// largeLocked returns the line for a call that has to wait in it.
func (d *dispatcher) largeLocked() *line {
	if d.large == nil {
		d.large = &line{is: inLarge}
	}
	return d.large
}

// fitsLocked reports whether there is room for what c holds while it runs. One always fits; and one
// that exceeds the room by itself does as soon as no other large one runs, and leaves the last
// eighth to small ones.
func (d *dispatcher) fitsLocked(c *incoming) bool {
	weight, most, held := c.weight(), d.plan.Room, d.holding-d.beyond
	if !c.small() {
		most = d.mostLarge()
	}
	switch {
	case d.holding == 0:
		return true
	case weight > most:
		return d.bulky == 0 && held <= d.plan.Room
	}
	return held+weight <= most
}

// mostLarge returns what calls that are not small may hold.
func (d *dispatcher) mostLarge() int { return d.plan.Room - d.plan.Room/8 }

// carryLocked counts n times what c holds while it runs.
func (d *dispatcher) carryLocked(c *incoming, n int) {
	weight := c.weight()
	d.holdLocked(n * weight)
	d.beyond += n * max(0, weight-d.mostLarge())
	if !c.small() {
		d.bulky += n
	}
	if c.nested() {
		d.inside += n * c.becomes.bytes()
	}
}

// insideLocked returns why c is refused, if it is made within another call and so waits for no
// room, and its parameters become more than there is room for.
func (d *dispatcher) insideLocked(c *incoming) *Abort {
	if n := c.becomes.bytes(); c.nested() && n > 0 && d.inside+n > d.plan.Room {
		return codec.ErrOverloaded.Withf("the parameters would become %d bytes, and those of calls within calls hold %d of %d here", n, d.inside, d.plan.Room)
	}
	return nil
}

// behindLocked reports whether c, which is not small, has to wait behind another one that waits for
// room: that one may need all of it.
func (d *dispatcher) behindLocked(c *incoming) bool {
	first := d.large.first()
	return first != nil && first.priority >= c.priority && !c.small()
}

// hold counts bytes that are held for calls that do not run; bytes below 0 are held no more.
func (d *dispatcher) hold(bytes int) {
	if bytes == 0 {
		return
	}
	d.mu.Lock()
	d.holdLocked(bytes)
	d.mu.Unlock()
	if bytes < 0 {
		d.poke()
	}
}

// roomLocked reports whether there is room for what c holds while it runs, and takes the window of
// its Blocks.
func (d *dispatcher) roomLocked(c *incoming, h *limits.Hold) bool {
	if !d.fitsLocked(c) {
		return false
	}
	room := d.s.terms.Room
	if c.pipe == nil || !c.stream || room == nil {
		return true
	}
	for !room.Begin(h) { // limits became smaller than what was promised
		if d.running == 0 {
			room.Lend(h)
			return true
		}
		if room.Late(&limits.Claim{Granted: d.poke}) {
			return false
		}
	}
	return true
}

// poke is called when a call may run that had no room.
func (d *dispatcher) poke() {
	d.mu.Lock()
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.s.shared.workers.start(job{d: d}, wake)
}

// answeredBy says who has answered a call.
type answeredBy uint8

const (
	byWorker answeredBy = iota
	byLent              // a worker beyond the limit, which was lent to a call within another one
	byReader            // that it has not run, or inline
	beyond              // that it was more than had been promised
)

// park notes that an answer, which holds so many bytes, waits to leave. If its call had a worker of
// its own, it counts as one of the running calls.
func (d *dispatcher) park(held int, by answeredBy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parkLocked(1, held, by)
}

// unpark is called when an answer that was parked has left.
func (d *dispatcher) unpark(held int, by answeredBy) {
	d.mu.Lock()
	d.parkLocked(-1, -held, by)
	grant := d.dueLocked() // what the call has cost may have been given back before
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.grant(grant)
	d.s.shared.workers.start(job{d: d}, wake)
}

// parkLocked counts n answers that hold so many bytes.
func (d *dispatcher) parkLocked(n, held int, by answeredBy) {
	d.holdLocked(held)
	switch by {
	case byWorker:
		d.parked += n
		d.running += n
	case byLent:
		d.lent += n
		d.answers += held
	default:
		d.away += n
	}
}

// Taken implements piping.Ledger.
func (d *dispatcher) Taken(messages, bytes int) { d.s.inbound.Remove(messages, bytes) }

// Shelter implements piping.Ledger: it sets bytes of the room for running calls aside.
func (d *dispatcher) Shelter(bytes int) bool {
	d.mu.Lock()
	if bytes > 0 && d.holding-d.beyond+bytes > d.plan.Room {
		d.mu.Unlock()
		return false
	}
	d.holdLocked(bytes)
	d.mu.Unlock()
	if bytes < 0 {
		d.poke()
	}
	return true
}
