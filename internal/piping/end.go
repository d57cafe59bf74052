// Package piping is what package pipe is made of: one end of a running call.
//
// An application holds an [End] as a pipe.Pipe, which documents what applications may do with it.
// The session that joins the pipe to a Wire uses the other methods: those whose names end in
// Arrived take what the peer has sent. An End knows nothing of wires. It hands what it sends to its
// [Port].
//
// # Windows
//
// Every direction of a pipe has a window: the receiver says up to which total the peer may send,
// and says more as its application takes Blocks. A Block costs its payload and an overhead that the
// receiver has announced, and leaves only when all of its cost fits. One that does not fit asks,
// and is let through when the receiving application waits for it. What is granted is set aside in a
// [limits.Room]. A reader that sleeps holds up its own pipe and nobody else.
package piping

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

var (
	// ErrClosed is pipe.ErrClosed.
	ErrClosed = errors.New("pipe: the call is over")

	// ErrEnded is pipe.ErrEnded.
	ErrEnded = errors.New("pipe: sending has been ended by CloseSend")
)

// Port is what a pipe needs from the session that holds it. Its methods are called without a lock
// of the pipe.
type Port interface {
	// Send sends a Block behind those sent before, and keeps no part of its payload unless that has
	// Memory. It may wait for room until ctx ends.
	Send(ctx context.Context, b Outgoing) error

	// Post is Send without waiting. It returns the state of the session's outbound direction.
	Post(b Outgoing) (limits.State, error)

	// Thin judges a Block by its loss rate, because it cannot be sent now. It reports whether the
	// Block was dropped. One that was not has no loss rate any more.
	Thin(b *Outgoing) (dropped bool)

	// CloseSend sends the end of the direction behind all Blocks. It does not wait.
	CloseSend() error

	// Close tells the peer that the pipe is over. A nil abort is success with result; an abort
	// overtakes Blocks that wait, and discards them. It does not wait, and does nothing if nobody
	// is left to tell.
	Close(result []byte, abort *codec.Abort)

	// Announce says that the pipe has something to tell the peer, for which [End.Controls] is to be
	// asked.
	Announce()

	// Ask puts an Ask behind all that was sent, for which [End.Asking] is to be asked when it
	// departs.
	Ask()

	// Stop tells the peer that no more Blocks are wanted.
	Stop()

	// MaxBlock returns the largest payload of a Block, in bytes, that the peer takes.
	MaxBlock() int
}

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

	// Lasting says that the Port is a context too, which ends only after the pipe is over: waiting
	// with it needs no look at its end, for which it would have to make a channel.
	Lasting bool
}

// End is one end of a running call. All methods may be called concurrently.
type End struct {
	function uint16
	priority priority.Priority
	loss     uint8
	// Blocks that are counted as sent and have not reached the port; see asksNext
	underWay atomic.Uint32
	port     Port

	terms *Terms

	mu        sync.Mutex
	state     state             // guarded by mu, like all below
	paused    bool              // by the application
	usedUp    bool              // the peer has to wait for a larger window
	creditDue bool              // the peer has to be told what is granted
	announced bool              // the port was told that there is something to tell
	lasting   bool              // see Config; fixed
	waiting   uint16            // receivers that wait
	largest   uint32            // cost of the largest Block that has arrived
	hold      limits.Hold       // of the room for what arrives
	inbox     fifo.Queue[Block] // arrived and not yet taken
	inboxed   int               // bytes of payload in inbox
	taken     uint64            // cost of the Blocks that were taken
	granted   uint64            // up to which cost the peer may send
	sent      uint64            // cost of the Blocks sent
	limit     uint64            // up to which cost this side may send
	rare      *rare             // nil until it is needed
	result    []byte            // of a Close with success
	abort     *codec.Abort      // why the call ended without a result
	arrived   signal            // something to receive
	credit    signal            // sent may go on
	finished  signal            // the pipe is over
}

// Init prepares e, which is often part of a larger object, and must be called before anything else.
func (e *End) Init(c Config) {
	e.function, e.priority, e.loss, e.port = c.Function, c.Priority, c.Loss, c.Port
	e.limit, e.lasting, e.terms = c.SendLimit, c.Lasting, c.Terms
	e.granted, e.hold = c.Granted, c.Hold
	if c.Unary {
		e.state = endedThere | stoppedThere
	}
}

// Loss returns the loss rate of Blocks that are sent without one of their own.
func (e *End) Loss() uint8 { return e.loss }

// Function returns the number of the called function.
func (e *End) Function() uint16 { return e.function }

// Priority returns the priority of all messages of the pipe.
func (e *End) Priority() priority.Priority { return e.priority }

// MaxBlock returns the largest payload, in bytes, that the peer takes in one Block: Send fails with
// ErrTooLarge for a larger one.
func (e *End) MaxBlock() int { return e.port.MaxBlock() }

// Result waits for the end of the call and returns its result, which belongs to the caller. The
// error is a *[codec.Abort]: why the call was aborted, or ErrCanceled or ErrExpired from ctx, which
// ends only the wait.
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

// GiveUp is what the application's Abort does: it ends the call from this side, and discards the
// Blocks that nobody has taken also if the call is over already.
func (e *End) GiveUp(err error) {
	if err == nil {
		err = codec.ErrCanceled
	}
	if !e.Abort(codec.AbortOf(err)) {
		e.discardLeft()
	}
}

// discardLeft discards what has come and was not taken, if nothing more comes.
func (e *End) discardLeft() {
	var a after
	e.mu.Lock()
	switch {
	case e.inbox.Len() == 0:
	case e.state&over != 0:
		e.discardLocked(&a)
		a.messages, a.bytes = 0, 0 // which go with what is left
		e.dropLeftLocked(&a)
	case e.state&endedThere != 0:
		e.discardLocked(&a)
		e.releaseLocked(&a)
	}
	e.unlock(a)
}

// Done returns a channel that is closed when the call is over.
func (e *End) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.finished.wait()
}

// Err returns nil while the call runs and when it has ended well, and then why it was aborted.
func (e *End) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.abort == nil {
		return nil
	}
	return e.abort
}

// finish ends the pipe, unless it is over already. Blocks that wait are discarded if it was aborted
// or ended here; otherwise they stay for the application, until it has taken them or nobody can: a
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
		e.discardLocked(a)
		e.releaseLocked(a)
	} else {
		e.leaveLocked(a)
	}
	e.arrived.end()
	e.credit.end()
	if e.rare != nil {
		e.rare.answer.end()
	}
	e.finished.end()
	return true
}
