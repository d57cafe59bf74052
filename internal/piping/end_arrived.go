package piping

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
)

// Verdict says what an arriving message was.
type Verdict uint8

const (
	Accepted Verdict = iota
	// the pipe is over, or wants no more; it is normal that messages cross a Close or Stop, and
	// they are ignored
	Late
	Violation // the peer must not send this: a Block after its end-of-stream
	Overrun   // the peer exceeded the window it was granted
)

// BlockArrived takes a Block. What is not Accepted remains the caller's.
func (e *End) BlockArrived(b Block) Verdict {
	var a after
	e.mu.Lock()
	v := e.blockLocked(b, &a)
	e.unlock(a)
	return v
}

// blockLocked is BlockArrived.
func (e *End) blockLocked(b Block, a *after) Verdict {
	switch _, ok := e.state.next(recvBlock); {
	case ok:
	case e.state&over != 0:
		return Late
	default:
		return Violation
	}
	if r := e.rare; r != nil && r.allowDue {
		// it is for a Block that has yet to be sent, when this one has been taken
		e.recallLocked(a)
	}
	if !e.arriveLocked(len(b.Payload)) {
		return Overrun
	}
	if e.state&stoppedHere != 0 {
		e.taken += uint64(len(b.Payload)) + e.terms.Overhead
		return Late
	}
	e.inbox.Push(b)
	e.inboxed += len(b.Payload)
	e.arrived.set()
	return Accepted
}

// Give is Send for the first n bytes of mem, which is given away with them, unless there is
// an error.
func (e *End) Give(ctx context.Context, mem *buffer.Buffer, n int) error {
	return e.Send(ctx, Outgoing{Payload: mem.B[:n], Memory: mem, Loss: e.loss})
}

// EndArrived takes the peer's end-of-stream, after skipped Blocks that did not arrive.
func (e *End) EndArrived(skipped uint64) Verdict {
	e.mu.Lock()
	s, ok := e.state.next(recvEnd)
	if !ok {
		defer e.mu.Unlock()
		if e.state&over != 0 {
			return Late
		}
		return Violation
	}
	e.state = s
	if skipped > 0 {
		e.more().endSkipped = skipped
	}
	e.arrived.set()
	var a after
	if e.granted != Unlimited {
		e.forgetWishLocked(&a)
		a.add(e.terms.Room.Shrink(&e.hold, e.receivedLocked()-e.taken))
	}
	e.unlock(a)
	return Accepted
}

// Dropped takes back what a Block with so many bytes of payload was counted as, because it was
// accepted by Send or Post and dropped before it left: the peer will never grant it again.
func (e *End) Dropped(payload int) { e.giveBack(e.cost(payload)) }

// StopArrived takes the peer's word that it wants no more Blocks.
func (e *End) StopArrived() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s, ok := e.state.next(recvStop); ok {
		e.state = s
		e.wakeLocked() // who waits to send learns it
	}
}

// CreditArrived takes the peer's grant: it accepts total bytes in all. A total below an earlier one
// changes nothing.
func (e *End) CreditArrived(total uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if total <= e.limit {
		return
	}
	e.limit = total
	if r := e.rare; r != nil && r.asked > 0 && total >= r.asked {
		r.asks, r.asked = false, 0 // which answers it
	}
	e.wakeLocked()
}

// CloseArrived takes the peer's Close: success with result, which belongs to the pipe from now on,
// or abort. It reports false if the pipe was over.
func (e *End) CloseArrived(result []byte, abort *codec.Abort) bool {
	return e.finish(recvClose, result, abort)
}

// Closing is CloseArrived with an abort for a caller that holds a lock: the pipe is over at once, and the
// caller calls settle when it holds none.
func (e *End) Closing(abort *codec.Abort) (settle func()) {
	var a after
	e.mu.Lock()
	e.finishLocked(recvClose, nil, abort, &a)
	e.mu.Unlock()
	return func() { a.do(e) }
}

// Abort ends the call from this side, and tells the peer why. It reports false, and does nothing,
// if the pipe is over.
func (e *End) Abort(abort *codec.Abort) bool {
	if !e.finish(sendClose, nil, abort) {
		return false
	}
	e.port.Close(nil, abort)
	return true
}

// Close ends the call with result and tells the peer. It does nothing if the pipe is over.
func (e *End) Close(result []byte) {
	if e.finish(sendClose, nil, nil) {
		e.port.Close(result, nil)
	}
}

// Waiting returns the number of Blocks that have arrived and were not taken, and how many bytes
// they hold.
func (e *End) Waiting() (messages, bytes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waitingLocked()
}

// waitingLocked is Waiting.
func (e *End) waitingLocked() (messages, bytes int) {
	for i := range e.inbox.Len() {
		bytes += e.inbox.At(i).Held()
	}
	return e.inbox.Len(), bytes
}
