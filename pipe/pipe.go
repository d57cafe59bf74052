// Package pipe provides the [Pipe], one running call. An Open starts the call, a Close ends it. In
// between, Blocks flow in both directions, each until its end-of-stream.
//
// A session creates pipes and connects them to its Wire. The application at either end sends,
// receives and waits for the result through its [Pipe].
//
// # Windows
//
// Every direction of a pipe has a window: a total up to which the peer may send. The receiver
// raises the total as its application takes Blocks. A Block costs its payload and an overhead that
// the receiver has announced. A Block is sent only when its whole cost fits into the window. A
// sender asks for credit for a Block that does not fit, and gets it when the receiving application
// waits for that Block. Granted credit is reserved in the room of the session. A slow reader blocks
// its own pipe and no other.
package pipe

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

var (
	// ErrClosed is the error of an operation on a pipe after its call has ended without an error.
	ErrClosed = piping.ErrClosed

	// ErrEnded is returned by Send, Post and CloseSend after CloseSend.
	ErrEnded = piping.ErrEnded
)

// Pipe is one running call. All methods are safe for concurrent use. When several goroutines
// receive, each Block goes to one of them. A method that waits returns early when its context, the
// call or the session ends.
//
// A session creates the Pipe. The zero Pipe is not usable.
type Pipe piping.End

// end returns p as its session uses it.
func (p *Pipe) end() *piping.End { return (*piping.End)(p) }

// Function returns the number of the called function.
func (p *Pipe) Function() uint16 { return p.end().Function() }

// Priority returns the priority of all messages of the pipe.
func (p *Pipe) Priority() priority.Priority { return p.end().Priority() }

// MaxBlock returns the largest payload, in bytes, that the peer accepts in one Block. Send fails
// with ErrTooLarge for a larger one.
func (p *Pipe) MaxBlock() int { return p.end().MaxBlock() }

// Send sends payload as one Block and keeps no reference to it. Send blocks while the window of the
// pipe is used up, while many bytes of the pipe wait to be sent, and while the session is at its
// soft limit.
//
// A nil error means that the Block has been accepted for sending. It does not mean that the peer
// has received the Block. After an error the peer does not receive the Block. The errors are
// [ErrEnded], [ErrClosed] when the call has ended without an error, and otherwise a *[codec.Abort]:
//
//   - ErrTooLarge, after which the pipe remains usable
//   - ErrStopped when the peer accepts no more Blocks
//   - ErrCanceled and ErrExpired from ctx
//   - the reason why the call was aborted
func (p *Pipe) Send(ctx context.Context, payload []byte, opts ...SendOption) error {
	return p.end().Send(ctx, newOutgoing(payload, p.end().Loss(), opts))
}

// Post sends payload as one Block without ever blocking, even at the soft limit. It returns the
// state of the session's outbound direction. From [limits.Soft] on the caller should hold back,
// because the session ends beyond the hard limit. Post fails with ErrOverloaded for a Block that
// does not fit into the window of the pipe. The other errors are those of Send.
func (p *Pipe) Post(payload []byte, opts ...SendOption) (limits.State, error) {
	return p.end().Post(newOutgoing(payload, p.end().Loss(), opts))
}

// AwaitCredit blocks until the window of the pipe has room for a Block, or until ctx ends. It
// returns the largest payload, in bytes, that can be sent at once. So a sender can wait before it
// allocates a Block. AwaitCredit reserves nothing, so a later Send may still block.
//
// The errors are those of Send. AwaitCredit does not wait for a peer that grants no credit in
// advance: then it may return 0, and Send waits.
func (p *Pipe) AwaitCredit(ctx context.Context) (fits int, err error) {
	return p.end().AwaitCredit(ctx)
}

// CloseSend ends this side's Blocks. The peer's Recv returns io.EOF after the last one. CloseSend
// does not block, and the call continues.
func (p *Pipe) CloseSend() error { return p.end().CloseSend() }

// Recv blocks until the next Block. It returns io.EOF after the peer's last Block, and when the
// call has ended without an error. An abort discards the Blocks that wait. The other errors are a
// *[codec.Abort]: ErrCanceled and ErrExpired from ctx, which end only the wait, or the reason why
// the call was aborted.
//
// Blocks that wait when the call ends without an error stay for Recv, even after Result. They are
// dropped when the context of Open has ended and Result has returned the result (then Recv returns
// ErrCanceled), and after ten seconds without a Recv if other messages need their room (then Recv
// returns ErrStalled).
func (p *Pipe) Recv(ctx context.Context) (Block, error) {
	b, err := p.end().Recv(ctx)
	return Block{b.Payload, b.Skipped, b.Memory}, err
}

// Skipped returns the number of Blocks dropped in transit since the one that Recv returned last.
// After io.EOF the number is final and includes the Blocks dropped at the end.
func (p *Pipe) Skipped() uint64 { return p.end().Skipped() }

// Stop rejects further Blocks from the peer and discards those that wait. From then on, Recv and
// the peer's Send return ErrStopped. The call and its other direction continue. Stop does not
// block.
func (p *Pipe) Stop() { p.end().Stop() }

// StopReading blocks Recv, and withholds further credit from the peer, until StartReading or the
// end of the call.
func (p *Pipe) StopReading() { p.end().StopReading() }

// StartReading ends StopReading.
func (p *Pipe) StartReading() { p.end().StartReading() }

// Result blocks until the call ends, and returns its result, which the caller owns. The error is a
// *[codec.Abort]: the reason why the call was aborted, or ErrCanceled or ErrExpired from ctx, which
// end only the wait. Blocks that the application has not received yet remain: see Recv. A program
// that does not want them calls Abort after Result, or ends the context of Open.
func (p *Pipe) Result(ctx context.Context) ([]byte, error) { return p.end().Result(ctx) }

// Abort ends the call from this side, even a call that still waits for a worker, and sends err to
// the peer. A nil err stands for ErrCanceled. After the end of the call, Abort only discards the
// Blocks that the application has not received.
func (p *Pipe) Abort(err error) {
	if err == nil {
		err = codec.ErrCanceled
	}
	p.end().GiveUp(codec.AbortOf(err))
}

// Done returns a channel that is closed when the call ends.
func (p *Pipe) Done() <-chan struct{} { return p.end().Done() }

// Err returns nil while the call runs and when it has ended without an error. After an abort it
// returns the reason.
func (p *Pipe) Err() error { return p.end().Err() }
