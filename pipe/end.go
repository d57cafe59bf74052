package pipe

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
)

// End is a [Pipe] as its session sees it: (*End)(p) has the methods for what comes from the peer
// and for the end of the call. Applications do not need it.
type End Pipe

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

// Block takes a Block that arrived. What is not Accepted remains the caller's.
func (e *End) Block(b Block) Verdict {
	p := (*Pipe)(e)
	var a after
	p.mu.Lock()
	v := p.blockLocked(b, &a)
	e.unlock(a)
	return v
}

// blockLocked is Block.
func (p *Pipe) blockLocked(b Block, a *after) Verdict {
	switch _, ok := p.state.next(recvBlock); {
	case ok:
	case p.state&over != 0:
		return Late
	default:
		return Violation
	}
	if r := p.rare; r != nil && r.allowDue {
		// it is for a Block that has yet to be sent, when this one has been taken
		p.recallLocked(a)
	}
	if !p.arriveLocked(len(b.Payload)) {
		return Overrun
	}
	if p.state&stoppedHere != 0 {
		p.taken += uint64(len(b.Payload)) + p.terms.Overhead
		return Late
	}
	p.inbox.Push(b)
	p.inboxed += len(b.Payload)
	p.arrived.set()
	return Accepted
}

// Give is [Pipe.Send] for the first n bytes of mem, which is given away with them, unless there is
// an error.
func (e *End) Give(ctx context.Context, mem *buffer.Buffer, n int) error {
	p := (*Pipe)(e)
	return p.send(ctx, Outgoing{Payload: mem.B[:n], Memory: mem, Loss: p.loss})
}

// CloseSend takes the peer's end-of-stream, after skipped Blocks that did not arrive.
func (e *End) CloseSend(skipped uint64) Verdict {
	p := (*Pipe)(e)
	p.mu.Lock()
	s, ok := p.state.next(recvEnd)
	if !ok {
		defer p.mu.Unlock()
		if p.state&over != 0 {
			return Late
		}
		return Violation
	}
	p.state = s
	if skipped > 0 {
		p.more().endSkipped = skipped
	}
	p.arrived.set()
	var a after
	if p.granted != Unlimited {
		p.forgetWishLocked(&a)
		a.add(p.terms.Room.Shrink(&p.hold, p.receivedLocked()-p.taken))
	}
	e.unlock(a)
	return Accepted
}

// Dropped takes back what a Block with so many bytes of payload was counted as, because it was
// accepted by Send or Post and dropped before it left: the peer will never grant it again.
func (e *End) Dropped(payload int) { p := (*Pipe)(e); p.giveBack(p.cost(payload)) }

// Stop takes the peer's word that it wants no more Blocks.
func (e *End) Stop() {
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.state.next(recvStop); ok {
		p.state = s
		p.wakeLocked() // who waits to send learns it
	}
}

// Credit takes the peer's grant: it accepts total bytes in all. A total below an earlier one
// changes nothing.
func (e *End) Credit(total uint64) {
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if total <= p.limit {
		return
	}
	p.limit = total
	if r := p.rare; r != nil && r.asked > 0 && total >= r.asked {
		r.asks, r.asked = false, 0 // which answers it
	}
	p.wakeLocked()
}

// Closed takes the peer's Close: success with result, which belongs to the pipe from now on, or
// abort. It reports false if the pipe was over.
func (e *End) Closed(result []byte, abort *codec.Abort) bool {
	return (*Pipe)(e).finish(recvClose, result, abort)
}

// Closing is Closed with an abort for a caller that holds a lock: the pipe is over at once, and the
// caller calls settle when it holds none.
func (e *End) Closing(abort *codec.Abort) (settle func()) {
	p := (*Pipe)(e)
	var a after
	p.mu.Lock()
	p.finishLocked(recvClose, nil, abort, &a)
	p.mu.Unlock()
	return func() { a.do(p) }
}

// Abort ends the call from this side, and tells the peer why. It reports false, and does nothing,
// if the pipe is over.
func (e *End) Abort(abort *codec.Abort) bool {
	p := (*Pipe)(e)
	if !p.finish(sendClose, nil, abort) {
		return false
	}
	p.port.Close(nil, abort)
	return true
}

// Close ends the call with result and tells the peer. It does nothing if the pipe is over.
func (e *End) Close(result []byte) {
	p := (*Pipe)(e)
	if p.finish(sendClose, nil, nil) {
		p.port.Close(result, nil)
	}
}

// Waiting returns the number of Blocks that have arrived and were not taken, and how many bytes
// they hold.
func (e *End) Waiting() (messages, bytes int) {
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waitingLocked()
}

// waitingLocked is Waiting.
func (p *Pipe) waitingLocked() (messages, bytes int) {
	for i := range p.inbox.Len() {
		bytes += p.inbox.At(i).Held()
	}
	return p.inbox.Len(), bytes
}
