// Package piping is what package pipe is made of: one end of a running call.
//
// An application holds an [End] as a pipe.Pipe, which documents what applications may do with it.
// The session that joins the pipe to a Wire uses the other methods: those whose names end in
// Arrived take what the peer has sent. An End knows nothing of wires. It hands what it sends to its
// [Port].
//
// Every direction of a pipe has a window: the receiver says up to which total the peer may send,
// and says more as its application takes Blocks. A Block costs its payload and an overhead that the
// receiver has announced, and leaves only when all of its cost fits. One that does not fit asks,
// and is let through when the receiving application waits for it. What is granted is set aside in a
// [limits.Room]. A reader that sleeps holds up its own pipe and nobody else.
//
// The types of the package know nothing of End, which has the lock and the order of things: a
// sender with its queue and the asking in that; a receiver with its inbox, its window and the
// peer's wish; the state of the pipe; code of the application around all that. What follows from a
// change and needs no lock is an after, which the End does when it has unlocked.
package piping

import (
	"context"
	"errors"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

var (
	// ErrClosed is pipe.ErrClosed.
	ErrClosed = errors.New("pipe: the call is over")

	// ErrEnded is pipe.ErrEnded.
	ErrEnded = errors.New("pipe: sending has been ended by CloseSend")
)

// errNoShelter ends a call whose application has asked for a Block, does not wait for it any more,
// and has no other place for it.
var errNoShelter = codec.ErrStalled.Withf("the application gave up waiting for a Block that had been asked for, and nothing else has room for it: receive without a deadline, or lower the number of streams")

// Config is what a session knows when a pipe is born.
type Config struct {
	Function uint16
	Priority priority.Priority
	Port     Port

	Terms *Terms

	Loss      uint8       // loss rate of Blocks that are sent without one of their own
	SendLimit uint64      // total cost that the peer granted at first, or [Unlimited]
	Granted   uint64      // total cost that the peer was granted at first, or [Unlimited]
	Hold      limits.Hold // what is set aside for that
	Unary     bool        // there are no Blocks, in either direction

	// Lasting says that the Port is a context too, which ends only after the pipe is over. A wait
	// with that context need not look at its end, for which the context would have to make a
	// channel.
	Lasting bool
}

// End is one end of a running call. All methods may be called concurrently.
type End struct {
	port     Port // these are fixed
	terms    *Terms
	function uint16
	loss     uint8

	state    state    // guarded by mu
	underWay underWay // locks itself

	mu       sync.Mutex // guards state, too, which stands where there is room for it
	in       receiver
	out      sender
	result   []byte       // of a Close with success
	abort    *codec.Abort // why the call ended without a result
	finished signal       // the pipe is over
}

// Init prepares e, which is often part of a larger object, and must be called before anything else.
func (e *End) Init(c Config) {
	e.port, e.terms, e.function, e.loss = c.Port, c.Terms, c.Function, c.Loss
	e.out.limit = c.SendLimit
	e.in.granted, e.in.hold, e.in.lasting, e.in.priority = c.Granted, c.Hold, c.Lasting, c.Priority
	if c.Unary {
		e.state = endedThere | stoppedThere
	}
}

// Loss returns the loss rate of Blocks that are sent without one of their own.
func (e *End) Loss() uint8 { return e.loss }

// Function returns the number of the called function.
func (e *End) Function() uint16 { return e.function }

// Priority returns the priority of all messages of the pipe.
func (e *End) Priority() priority.Priority { return e.in.priority }

// MaxBlock returns the largest payload, in bytes, that the peer takes in one Block.
func (e *End) MaxBlock() int { return e.port.MaxBlock() }

// Result waits for the end of the call: see pipe.Result.
func (e *End) Result(ctx context.Context) ([]byte, error) {
	select {
	case <-e.Done():
	case <-ctx.Done():
		return nil, codec.AbortOf(ctx.Err())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.abort != nil {
		return nil, e.abort
	}
	return e.result, nil
}

// Done returns a channel that is closed when the call is over.
func (e *End) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.unseenLocked(); r != nil {
		return r.seen
	}
	return e.finished.wait()
}

// Err returns nil while the call runs and when it has ended well, and then why it was aborted.
func (e *End) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.abort == nil || e.unseenLocked() != nil {
		return nil
	}
	return e.abort
}

// GiveUp is what the application's Abort does: it ends the call from this side. If the call is over
// already, it discards the Blocks that nobody has taken.
func (e *End) GiveUp(abort *codec.Abort) {
	if !e.Abort(abort) {
		e.discardLeft()
	}
}

// discardLeft discards what has come and was not taken, if nothing more comes.
func (e *End) discardLeft() {
	var a after
	e.mu.Lock()
	switch {
	case e.in.inbox.Len() == 0:
	case e.state.over():
		e.in.discard(e.terms, &a)
		a.messages, a.bytes = 0, 0 // which go with what is left
		e.in.dropLeft(&a)
	case e.state&endedThere != 0:
		e.in.discard(e.terms, &a)
		e.in.release(e.state, e.terms, &a)
	}
	e.unlock(a)
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

// CloseArrived takes the peer's Close: success with result, which belongs to the End from now on,
// or abort. It reports false if the pipe was over.
func (e *End) CloseArrived(result []byte, abort *codec.Abort) bool {
	return e.finish(recvClose, result, abort)
}

// Closing is CloseArrived with an abort for a caller that holds a lock: the pipe is over at once,
// and the caller calls settle when it holds none.
func (e *End) Closing(abort *codec.Abort) (settle func()) {
	var a after
	e.mu.Lock()
	e.finishLocked(recvClose, nil, abort, &a)
	e.mu.Unlock()
	return func() { e.do(&a) }
}

// finish ends the pipe, unless it is over already. Blocks that wait are discarded if it was aborted
// or ended here. Otherwise they stay for the application, until it has taken them or nobody can: a
// result may be all that it wants.
func (e *End) finish(ev event, result []byte, abort *codec.Abort) bool {
	var a after
	e.mu.Lock()
	ok := e.finishLocked(ev, result, abort, &a)
	e.unlock(a)
	return ok
}

// finishLocked is finish.
func (e *End) finishLocked(ev event, result []byte, abort *codec.Abort, a *after) bool {
	s, ok := e.state.next(ev)
	if !ok {
		return false
	}
	e.state, e.result, e.abort = s, result, abort
	if abort != nil || ev == sendClose {
		e.in.discard(e.terms, a)
		e.in.release(s, e.terms, a)
	} else {
		e.in.leave(s, e.terms, a)
	}
	e.in.arrived.end()
	e.out.end()
	e.finished.end()
	a.show = e.unseenLocked() != nil
	return true
}

// unlock unlocks e, and does a.
func (e *End) unlock(a after) {
	e.mu.Unlock()
	e.do(&a)
}

// do does what has to be done when the lock is free.
func (e *End) do(a *after) {
	a.do(e.terms, e.port)
	if a.abort {
		e.Abort(errNoShelter)
	}
	if a.show {
		e.show()
	}
}
