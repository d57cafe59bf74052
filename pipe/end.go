package pipe

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// End is a [Pipe] as its session sees it: (*End)(p) has the methods for what comes from the peer and for the end of the call. Applications do not need it.
type End Pipe

// Verdict says what an arriving message was.
type Verdict uint8

const (
	Accepted  Verdict = iota
	Late              // the pipe is over, or wants no more; it is normal that messages cross a Close or Stop, and they are ignored
	Violation         // the peer must not send this: a Block after its end-of-stream
	Overrun           // the peer exceeded the window it was granted
)

// Block takes the payload of a Block that arrived, after skipped others that did not: with the memory it is in, which is released with the Block, or a copy if mem is nil. Unless expires is zero, it is not
// worth taking from then on. What is not Accepted remains the caller's.
func (e *End) Block(payload []byte, mem *buffer.Buffer, skipped uint64, expires time.Time) Verdict {
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch _, ok := p.state.next(recvBlock); {
	case ok:
	case p.state&over != 0:
		return Late
	default:
		return Violation
	}
	if !p.window.arrive(cost(payload)) {
		return Overrun
	}
	if p.state&stoppedHere != 0 {
		return Late
	}
	p.inbox.Push(newBlock(payload, mem, skipped, expires))
	p.inboxed += len(payload)
	p.arrived.set()
	return Accepted
}

// Give is [Pipe.Send] for the first n bytes of mem, which is given away with them, unless there is an error.
func (e *End) Give(ctx context.Context, mem *buffer.Buffer, n int) error {
	p := (*Pipe)(e)
	return p.send(ctx, Outgoing{Payload: mem.B[:n], Memory: mem, Loss: p.loss})
}

// CloseSend takes the peer's end-of-stream, after skipped Blocks that did not arrive.
func (e *End) CloseSend(skipped uint64) Verdict {
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.state.next(recvEnd)
	switch {
	case ok:
	case p.state&over != 0:
		return Late
	default:
		return Violation
	}
	p.state = s
	p.endSkipped = skipped
	p.arrived.set()
	return Accepted
}

// Dropped takes back what a Block with so many bytes of payload was counted as, because it was accepted by Send or Post and dropped before it left: the peer will never
// grant it again.
func (e *End) Dropped(payload int) { (*Pipe)(e).giveBack(uint64(payload) + limits.Overhead) }

// Stop takes the peer's word that it wants no more Blocks.
func (e *End) Stop() {
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.state.next(recvStop); ok {
		p.state = s
		p.credit.set() // who waits to send learns it
	}
}

// Credit takes the peer's grant: it accepts total bytes in all. A total below an earlier one changes nothing.
func (e *End) Credit(total uint64) {
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == 0 || total <= p.limit {
		return
	}
	p.limit = total
	if p.state&over == 0 {
		p.credit.set()
	}
}

// Closed takes the peer's Close: success with result, which belongs to the pipe from now on, or abort. It reports false if the pipe was over.
func (e *End) Closed(result []byte, abort *codec.Abort) bool {
	return (*Pipe)(e).finish(recvClose, result, abort)
}

// Close ends the call with result and tells the peer. It does nothing if the pipe is over.
func (e *End) Close(result []byte) {
	p := (*Pipe)(e)
	if p.finish(sendClose, nil, nil) {
		p.port.Close(result, nil)
	}
}

// Waiting returns the number of Blocks that have arrived and were not taken, and their bytes of payload.
func (e *End) Waiting() (messages, bytes int) {
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inbox.Len(), p.inboxed
}
