// Package piping implements package pipe: one end of a running call.
//
// An application uses an [End] as a pipe.Pipe, which documents the methods for applications. The
// session that connects the pipe to a Wire uses the other methods. Those with names that end in
// Arrived process messages of the peer. An End does not know wires. It sends through its [Port].
//
// Every direction of a pipe has a window: a total up to which the peer may send. The receiver
// raises the total as its application takes Blocks. A Block costs its payload and an overhead that
// the receiver has announced. A small Block is sent when its whole cost fits into the window. A
// large one that does not fit is sent in pieces, and the receiver grants the credit for the rest
// when its application waits for that Block. Granted credit is reserved in a [flow.Budget]. A slow
// reader blocks its own pipe and no other.
//
// The End has the lock and determines the order of events. The other types of the package do not
// know the End: a sender with its divided Block; a receiver with its inbox, its window and the
// Block that arrives; the state of the pipe; the interceptors of the application. Work that follows
// from a change and needs no lock is collected in a deferred, and the End does it after it has
// released the lock.
package piping

import (
	"context"
	"errors"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

var (
	// ErrClosed is pipe.ErrClosed.
	ErrClosed = errors.New("pipe: the call is over")

	// ErrEnded is pipe.ErrEnded.
	ErrEnded = errors.New("pipe: sending has been ended by CloseSend")
)

// errNoRoom ends a call if the application has waited for a Block, so that it got credit, and has
// stopped waiting, and there is no other room for the Block.
var errNoRoom = codec.ErrStalled.Withf("the application stopped waiting for a Block that had its credit, and no other room is left for it: receive without a deadline, or lower the number of streams")

// Config configures an End at the start of its pipe.
type Config struct {
	Function uint16
	Priority priority.Priority
	Port     Port

	Terms *Terms

	Loss      uint8       // default loss rate of Blocks
	SendLimit uint64      // total cost that the peer granted first, or [Unlimited]
	Granted   uint64      // total cost that this side granted first, or [Unlimited]
	Hold      flow.Window // the room for Granted
	Unary     bool        // neither direction has Blocks

	// Lasting says that the Port is also a context that ends only after the pipe is over. A wait
	// with that context need not watch for its end, for which the context would have to make a
	// channel.
	Lasting bool
}

// End is one end of a running call. All methods are safe for concurrent use.
type End struct {
	port     Port // fixed, as are the next three
	terms    *Terms
	function uint16
	loss     uint8

	state    endState       // guarded by mu
	inflight inflightBlocks // locks itself

	mu       sync.Mutex // guards state, too, which is above to save space
	in       receiver
	out      sender
	result   []byte       // of a Close with success
	abort    *codec.Abort // the reason if the call ended without a result
	finished signal       // ended when the pipe is over
}

// Init prepares e, which is often part of a larger object. It is called before any other method.
func (e *End) Init(c Config) {
	e.port, e.terms, e.function, e.loss = c.Port, c.Terms, c.Function, c.Loss
	e.out.limit = c.SendLimit
	e.in.granted, e.in.hold, e.in.lasting, e.in.priority = c.Granted, c.Hold, c.Lasting, c.Priority
	if c.Unary {
		e.state = endedThere | stoppedThere
	}
}

// Loss returns the default loss rate of Blocks.
func (e *End) Loss() uint8 { return e.loss }

// Function returns the number of the called function.
func (e *End) Function() uint16 { return e.function }

// Priority returns the priority of all messages of the pipe.
func (e *End) Priority() priority.Priority { return e.in.priority }

// MaxBlock returns the largest payload, in bytes, that the peer accepts in one Block.
func (e *End) MaxBlock() int { return e.port.MaxBlock() }

// Result blocks until the call ends: see pipe.Result.
func (e *End) Result(ctx context.Context) ([]byte, error) {
	select {
	case <-e.Done():
	case <-ctx.Done():
		return nil, codec.AbortOf(ctx.Err())
	}
	e.mu.Lock()
	e.state |= resultTaken
	drop := e.state&contextEnded != 0
	result, abort := e.result, e.abort
	e.mu.Unlock()
	if drop {
		e.dropLeft(errLeftOver)
	}
	if abort != nil {
		return nil, abort
	}
	return result, nil
}

// Done returns a channel that is closed when the call ends.
func (e *End) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.unseenLocked(); r != nil {
		return r.seen
	}
	return e.finished.wait()
}

// Err returns nil while the call runs and when it has ended without an error. After an abort it
// returns the reason.
func (e *End) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.abort == nil || e.unseenLocked() != nil {
		return nil
	}
	return e.abort
}

// GiveUp implements Abort of the application: it ends the call from this side. If the call is over
// already, it discards the Blocks that the application has not received.
func (e *End) GiveUp(abort *codec.Abort) {
	if !e.Abort(abort) {
		e.discardLeft()
	}
}

// discardLeft discards the Blocks in the inbox, if no more Blocks can arrive.
func (e *End) discardLeft() {
	var a deferred
	e.mu.Lock()
	switch {
	case e.in.inbox.Len() == 0:
	case e.state.over():
		e.in.discard(e.terms, &a)
		e.forgetLeftLocked(&a)
	case e.state&endedThere != 0:
		e.in.discard(e.terms, &a)
		e.in.release(e.state, e.terms, &a)
	}
	e.unlock(a)
}

// Abort ends the call from this side and sends the reason to the peer. It returns false, and does
// nothing, if the pipe is over.
func (e *End) Abort(abort *codec.Abort) bool {
	if !e.finish(sendClose, nil, abort) {
		return false
	}
	e.port.Close(nil, abort)
	return true
}

// Close ends the call with result and sends it to the peer. It does nothing if the pipe is over.
func (e *End) Close(result []byte) {
	if e.finish(sendClose, nil, nil) {
		e.port.Close(result, nil)
	}
}

// CloseArrived processes the peer's Close: success with result, which the End owns from then on, or
// abort. It returns false if the pipe was over.
func (e *End) CloseArrived(result []byte, abort *codec.Abort) bool {
	return e.finish(recvClose, result, abort)
}

// Closing is CloseArrived with an abort, for a caller that holds a lock. The pipe is over at once,
// and the caller calls settle after it has released its lock.
func (e *End) Closing(abort *codec.Abort) (settle func()) {
	var a deferred
	e.mu.Lock()
	e.finishLocked(recvClose, nil, abort, &a)
	e.mu.Unlock()
	return func() { e.do(&a) }
}

// finish ends the pipe, unless the pipe is over already. Blocks in the inbox are discarded if the
// call was aborted or ended here. Otherwise they stay until the application has taken them or
// cannot take them any more, since the application may want only the result.
func (e *End) finish(ev endEvent, result []byte, abort *codec.Abort) bool {
	var a deferred
	e.mu.Lock()
	ok := e.finishLocked(ev, result, abort, &a)
	if ok {
		e.moveDebtAndUnlock(a)
	} else {
		e.unlock(a)
	}
	return ok
}

// finishLocked is finish with the lock held.
func (e *End) finishLocked(ev endEvent, result []byte, abort *codec.Abort, a *deferred) bool {
	s, ok := e.state.next(ev)
	if !ok {
		return false
	}
	e.state, e.result, e.abort = s, result, abort
	if abort != nil || ev == sendClose {
		e.in.discard(e.terms, a)
		e.in.release(s, e.terms, a)
	} else if e.in.inbox.Len() > 0 {
		e.in.settle(s, e.terms, a)
		e.keepLeftLocked(a)
	} else {
		e.in.release(s, e.terms, a)
	}
	e.in.arrived.end()
	e.out.end()
	e.finished.end()
	a.show = e.unseenLocked() != nil
	return true
}

// unlock unlocks e and does a.
func (e *End) unlock(a deferred) {
	e.mu.Unlock()
	e.do(&a)
}

// do does a without a lock.
func (e *End) do(a *deferred) {
	a.do(e.terms, e.port)
	if a.abort && !e.Abort(errNoRoom) {
		e.dropLeft(errNoRoom)
	}
	if a.watchLeft {
		e.watchLeft()
	}
	if a.forgets != nil {
		a.forgets()
	}
	if a.show {
		e.show()
	}
}
