package dispatch

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/quota"
)

// holding counts the bytes of running calls besides the calls themselves: parameters and their
// decoded form, answers that wait to leave, and Blocks without a receiver. A call is taken only
// when its bytes fit. It is guarded by the lock of its dispatcher.
type holding struct {
	bytes int
	// part of bytes: the excess of calls that exceed the budget alone
	beyond int
	bulky  int       // running calls that are not small
	inside int       // decoded bytes of the parameters of running nested calls
	blocks int       // part of bytes: Blocks that no application waits for
	part   flow.Part // bytes, reported to the owner of the session
}

// begin reports the bytes to the owner of the session from now on.
func (h *holding) begin(o *quota.Owner) { h.part.Begin(&o.Tally) }

// end withdraws the bytes that were reported.
func (h *holding) end() { h.part.End() }

// add adds to the bytes.
func (h *holding) add(bytes int) {
	h.bytes += bytes
	h.part.Tell(h.bytes)
}

// fits reports whether the bytes of j, while it runs, fit. One call always fits. A call that
// exceeds the budget alone, or beside the Blocks, fits as soon as no other large one runs. Large
// calls leave the last eighth to small ones.
func (h *holding) fits(j Job, room int) bool {
	weight, most, held, small := j.Weight(), room, h.bytes-h.beyond, j.Task().small()
	if !small {
		most = mostLarge(room)
	}
	switch {
	case h.bytes == 0:
		return true
	case weight > most-h.blocks:
		return h.bulky == 0 && held <= room
	}
	return held+weight <= most
}

// mostLarge returns the budget of calls that are not small.
func mostLarge(room int) int { return room - room/8 }

// carry adds the bytes of j, while it runs, n times.
func (h *holding) carry(j Job, room, n int) {
	weight, t := j.Weight(), j.Task()
	h.add(n * weight)
	h.beyond += n * max(0, weight-mostLarge(room))
	if !t.small() {
		h.bulky += n
	}
	if t.Nested {
		h.inside += n * t.DecodedSize.Bytes()
	}
}

// refusal returns an error for a nested call, which does not wait for memory, if its decoded
// parameters exceed the budget.
func (h *holding) refusal(t *Task, room int) *codec.Abort {
	if n := t.DecodedSize.Bytes(); t.Nested && n > 0 && h.inside+n > room {
		return codec.ErrOverloaded.Withf("the parameters would become %d bytes, and those of nested calls hold %d of %d here", n, h.inside, room)
	}
	return nil
}

// exceeds reports whether bytes more would exceed the budget.
func (h *holding) exceeds(bytes, room int) bool { return h.bytes-h.beyond+bytes > room }

// AnsweredBy is the goroutine that has answered a call.
type AnsweredBy uint8

const (
	ByWorker    AnsweredBy = iota
	ByLent                 // a worker beyond the limit, lent to a nested call
	ByReader               // the reader, which rejects a call, or runs it inline
	BeyondGrant            // the reader, for a call that exceeds the grant
)

// parkedAnswers counts answers that wait to leave.
type parkedAnswers struct {
	running int32 // of calls with a worker of their own: they count as running calls
	lent    int32 // of nested calls
	away    int32 // of calls that were answered by the reader
}

// Park counts an answer that waits to leave, and its bytes.
func (d *Dispatcher) Park(held int, by AnsweredBy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parkLocked(1, held, by)
}

// Unpark is called when an answer that was parked may leave.
func (d *Dispatcher) Unpark(held int, by AnsweredBy) {
	d.mu.Lock()
	d.parkLocked(-1, -held, by)
	grant := d.dueLocked() // the cost of the call may have been released before
	wake := d.pokeLocked()
	d.mu.Unlock()
	d.grant(grant)
	d.scheduler.workers.start(wake)
}

// parkLocked counts n answers and their bytes.
func (d *Dispatcher) parkLocked(n, held int, by AnsweredBy) {
	d.holding.add(held)
	switch by {
	case ByWorker:
		d.parked.running += int32(n)
		d.running += int32(n)
	case ByLent:
		d.parked.lent += int32(n)
		d.room.answers += held
	default:
		d.parked.away += int32(n)
	}
}

// Hold adds bytes of calls that do not run; bytes may be negative.
func (d *Dispatcher) Hold(bytes int) {
	if bytes == 0 {
		return
	}
	d.mu.Lock()
	d.holding.add(bytes)
	d.mu.Unlock()
	if bytes < 0 {
		d.poke()
	}
}

// Reserve reserves bytes of the budget for running calls, for a Block that no application waits
// for, or releases them; see piping.Ledger. All such Blocks together get an eighth of the budget,
// so that they never hold up a large call for good.
func (d *Dispatcher) Reserve(bytes int) bool {
	d.mu.Lock()
	h := &d.holding
	if bytes > 0 && (h.exceeds(bytes, d.plan.Room) || h.blocks+bytes > max(d.plan.Room/8, d.plan.Large)) {
		d.mu.Unlock()
		return false
	}
	h.blocks += bytes
	h.add(bytes)
	d.mu.Unlock()
	if bytes < 0 {
		d.poke()
	}
	return true
}
