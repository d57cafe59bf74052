package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// endpoint is this side of a running call, which receives the messages for its pipe. Its methods
// are called without a lock.
type endpoint interface {
	// block receives a Block. Its payload is valid only during the call. An error ends the session.
	block(b message.Block) error

	// closed receives the peer's Close. Its slices are valid only during the call. The endpoint has
	// left the table. An error ends the session.
	closed(c message.Close) error

	// fail ends the call because the session ended. The endpoint has left the table.
	fail(a *codec.Abort)

	// outer returns the call as the parent of nested calls, or nil if there can be none. It is
	// called with the lock of the table held.
	outer() *outboundParent

	// Pipe returns the pipe, or nil if the call takes no Blocks here.
	Pipe() *pipe.Pipe

	// info returns the fixed properties of the call. It is called with the lock of the table held:
	// a unary call that has left the table is reused.
	info() Info

	// queued reports whether this is a call of the peer that has not begun.
	queued() bool
}

// Info describes a running call.
type Info struct {
	Pipe     uint64 // the id, the same on both sides
	Function uint16 // number of the called function
	// name of the function in this side's service; empty for calls of this side
	Name     string
	Made     bool              // by this side
	Queued   bool              // a call of the peer that has not begun
	Priority priority.Priority // of all its messages
	Waiting  limits.Amount     // Blocks that have arrived and have not been taken
}

// waiting returns the amount that has arrived for e and has not been taken.
func waiting(e endpoint) limits.Amount {
	p := e.Pipe()
	if p == nil {
		return limits.Amount{}
	}
	messages, bytes := (*piping.End)(p).Waiting()
	return limits.Amount{Messages: messages, Bytes: bytes}
}
