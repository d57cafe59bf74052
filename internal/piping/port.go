package piping

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// Port is the session of an [End]. Its methods are called without a lock of the End.
type Port interface {
	// Send sends a Block, or a piece of one, after those sent before, and keeps no reference to its
	// payload unless that has Memory. It may block for room until ctx ends.
	Send(ctx context.Context, b Outgoing) error

	// Post is Send without blocking. It returns the state of the session's outbound direction.
	Post(b Outgoing) (limits.State, error)

	// Thin judges a Block by its loss rate, because it cannot be sent now. It reports whether the
	// Block was dropped. A Block that passes loses its loss rate.
	Thin(b *Outgoing) (dropped bool)

	// Expire drops a Block that has expired, of which no further piece is sent.
	Expire(b *Outgoing)

	// CloseSend sends the end of the direction after all Blocks. It does not block.
	CloseSend() error

	// Close sends the end of the pipe to the peer. A nil abort means success with result. An abort
	// overtakes queued Blocks, and discards them. Close does not block, and does nothing if the
	// peer is gone.
	Close(result []byte, abort *codec.Abort)

	// Announce reports that the End has Controls for the peer. The session then calls End.Controls.
	Announce()

	// Abandon informs the peer, after all sent messages, that no further piece comes of the Block
	// of which the last one was sent. whole is the size of the Block. Abandon does not block.
	Abandon(whole int)

	// Watch reports that the End has spare credit. The session then calls End.Idle from time to
	// time, until that finds none.
	Watch()

	// Skip puts a Skip after all sent messages. The session calls End.Skipping with stays when the
	// Skip departs.
	Skip(stays uint64)

	// Stop informs the peer that this side accepts no more Blocks. arriving reports that a Block is
	// arriving in parts, which are not needed any more.
	Stop(arriving bool)

	// Outlive calls f when the context of Open ends, for a pipe that has ended before. stop stops
	// waiting for that, and is nil if the context never ends.
	Outlive(f func()) (stop func() bool)

	// MaxBlock returns the largest payload of a Block, in bytes, that the peer accepts.
	MaxBlock() int

	// Owns reports whether ctx is the context of the call that the pipe carries, which ends with
	// the pipe.
	Owns(ctx context.Context) bool

	// Misbehaved logs that an interceptor of the End has not returned, and returns the error for
	// that. v is the recovered value, or nil if the goroutine is being ended.
	Misbehaved(v any) *codec.Abort
}
