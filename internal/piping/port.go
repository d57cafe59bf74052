package piping

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// Port is what an [End] needs from the session that holds it. Its methods are called without a lock
// of the End.
type Port interface {
	// Send sends a Block behind those sent before, and keeps no part of its payload unless that has
	// Memory. It may wait for room until ctx ends.
	Send(ctx context.Context, b Outgoing) error

	// Post is Send without waiting. It returns the state of the session's outbound direction.
	Post(b Outgoing) (limits.State, error)

	// Thin judges a Block by its loss rate, because it cannot be sent now. It reports whether the
	// Block was dropped. A Block that was not dropped has no loss rate any more.
	Thin(b *Outgoing) (dropped bool)

	// CloseSend sends the end of the direction behind all Blocks. It does not wait.
	CloseSend() error

	// Close tells the peer that the pipe is over. A nil abort is success with result. An abort
	// overtakes Blocks that wait, and discards them. Close does not wait, and does nothing if
	// nobody is left to tell.
	Close(result []byte, abort *codec.Abort)

	// Announce says that the End has something to tell the peer. The session then calls
	// End.Controls.
	Announce()

	// Ask puts an Ask behind all that was sent. The session calls End.Asking when it departs.
	Ask()

	// Skip puts a Skip behind all that was sent. The session calls End.Skipping with stays when it
	// departs.
	Skip(stays uint64)

	// Stop tells the peer that no more Blocks are wanted.
	Stop()

	// MaxBlock returns the largest payload of a Block, in bytes, that the peer takes.
	MaxBlock() int

	// Misbehaved logs that code around the End has not returned, and returns the error for that. v
	// is what was recovered, or nil if the goroutine is being ended.
	Misbehaved(v any) *codec.Abort
}
