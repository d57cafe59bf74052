package asterisque

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// endpoint is this side of a running call: who gets what arrives for its pipe. Its methods are
// called without a lock.
type endpoint interface {
	// block takes a Block, whose payload is valid only during the call. An error ends the session.
	block(b message.Block) error

	// closed takes the peer's Close, whose slices are valid only during the call. The endpoint has
	// left the table. An error ends the session.
	closed(c message.Close) error

	// fail ends the call because the session ended. The endpoint has left the table.
	fail(a *Abort)

	// outer returns what the call is to those within it, or nil if there can be none. It is called
	// with the lock of the table held.
	outer() *outer

	// untyped returns the pipe, or nil if the call takes no Blocks here.
	untyped() *pipe.Pipe

	// info tells what is fixed about the call. It is called with the lock of the table held: a
	// unary call that has left is used again.
	info() PipeInfo

	// queued reports whether it is a call of the peer whose handler has not begun.
	queued() bool
}

// PipeInfo tells of one running call what it holds up.
type PipeInfo struct {
	Pipe     uint64 // the id, which both sides know
	Function uint16 // the called function's number
	// that the service here gives the function; empty for calls of this side
	Name     string
	Made     bool              // by this side
	Queued   bool              // a call of the peer whose handler has not begun
	Priority priority.Priority // of all its messages
	Waiting  limits.Amount     // Blocks that have arrived and were not taken
}

// waiting returns what has arrived for e and was not taken.
func waiting(e endpoint) limits.Amount {
	p := e.untyped()
	if p == nil {
		return limits.Amount{}
	}
	messages, bytes := (*piping.End)(p).Waiting()
	return limits.Amount{Messages: messages, Bytes: bytes}
}
