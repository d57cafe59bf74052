package asterisque

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
)

// Abort is the error of a call, a pipe or a session that ended without a result, on whichever side
// of the wire it is met. Branch on it with [errors.Is] and the values below, or on its Code. Return
// one from a handler to choose the code, the message and the detail that the caller gets.
type Abort = codec.Abort

// Code says what an [Abort] means. 1..999 belong to the library; applications use numbers from 1000
// on.
type Code = codec.Code

// The values to compare an error with, by [errors.Is]. All but the last two are an *[Abort]. See
// package codec for what each means and what to do next.
var (
	// The caller gave up, or its context was canceled.
	ErrCanceled = codec.ErrCanceled
	// The deadline or the time to live passed.
	ErrExpired = codec.ErrExpired
	// The peer offers no function of this number.
	ErrNoFunction = codec.ErrNoFunction
	// The function takes parameters of another type, or they would become too much.
	ErrBadParams = codec.ErrBadParams
	// A result or a Block is of another type, would become too much, or could not be encoded.
	ErrBadResult = codec.ErrBadResult
	// The message exceeds what the peer accepts, or can hold, or the hard limit of this side; send
	// less, or in Blocks.
	ErrTooLarge = codec.ErrTooLarge
	// Too much waits or runs already; try again later.
	ErrOverloaded = codec.ErrOverloaded
	// A side is going away; call on another session.
	ErrUnavailable = codec.ErrUnavailable
	// The handler panicked, or what encodes a value; its log says where.
	ErrPanicked = codec.ErrPanicked
	// One side broke the protocol, and the session ended.
	ErrProtocol = codec.ErrProtocol
	// The session was closed, or its Wire died.
	ErrSessionClosed = codec.ErrSessionClosed
	// The session exceeded its hard limit and was closed by force.
	ErrHardLimit = codec.ErrHardLimit
	// The session stood still at its soft limit for too long, or nobody takes what a call had asked
	// for.
	ErrStalled = codec.ErrStalled
	// The peer speaks something else, or too slowly.
	ErrHandshake = codec.ErrHandshake
	// A side sent more Blocks or calls than it was granted.
	ErrWindow = codec.ErrWindow
	// This peer may not do that.
	ErrUnauthorized = codec.ErrUnauthorized
	// The receiver wants no more of the stream.
	ErrStopped = codec.ErrStopped
	// The call of this pipe or stream has ended well.
	ErrPipeClosed = pipe.ErrClosed
	// This side has ended its stream already, by CloseSend.
	ErrEnded = pipe.ErrEnded
)

// Repeatable reports whether the call that failed with err certainly did not run, so that it can be
// made again, here or on another session, without running twice. It is true of calls that never
// left this side and of those that the peer refused.
func Repeatable(err error) bool { return codec.Repeatable(err) }

// RetryAfter returns how long to wait before the call that failed with err is made again, if err is
// an ErrOverloaded whose side said so: an hour at most, whatever it said. See [Retry].
func RetryAfter(err error) (d time.Duration, ok bool) { return codec.RetryAfter(err) }

// neverSent returns a copy of what err is as an Abort, marked as that of a call which never left
// this side.
func neverSent(err error) *Abort {
	a := *abortOf(err)
	a.Ran = codec.NeverSent
	return &a
}

// abortOf is [codec.AbortOf] for an error that may be the application's, and panic when it is asked
// what it says.
func abortOf(err error) (a *Abort) {
	defer func() {
		if recover() != nil {
			a = &Abort{Code: codec.Failed, Message: "for a reason that cannot be told: its error panics"}
		}
	}()
	return codec.AbortOf(err)
}

// violation returns the error of a peer that broke the protocol.
func violation(format string, args ...any) *Abort {
	return &Abort{Code: codec.Protocol, Message: fmt.Sprintf(format, args...)}
}

// contextError is AbortOf(ctx.Err()), which must not be nil, with the cause that the application
// gave.
func contextError(ctx context.Context) *Abort {
	a := *codec.AbortOf(ctx.Err())
	if cause := context.Cause(ctx); cause != nil && cause != ctx.Err() {
		a.Message = fmt.Sprint(cause) // which survives an error that panics
	}
	return &a
}

// remote returns a copy of what a Close of the peer said, whose slices are valid only for the
// moment.
func remote(a *codec.Abort) *Abort {
	c := *a
	c.Detail = bytes.Clone(a.Detail)
	c.Remote = true
	return &c
}
