// Package pipe is one running call. It is born by an Open, carries Blocks both ways, each direction
// until its end-of-stream, and dies by a Close.
//
// A session makes pipes, and joins them to its Wire. The application at either end holds a [Pipe]:
// it sends, receives and waits for the result.
//
// # Windows
//
// Every direction of a pipe has a window: the receiver says up to which total the peer may send,
// and says more as its application takes Blocks. A Block costs its payload and an overhead that the
// receiver has announced, and leaves only when all of its cost fits. One that does not fit asks,
// and is let through when the receiving application waits for it. What is granted is set aside in a
// [limits.Room]. A reader that sleeps holds up its own pipe and nobody else.
package pipe

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

var (
	// ErrClosed is returned for what is asked of a pipe whose call has ended well.
	ErrClosed = piping.ErrClosed

	// ErrEnded is returned by Send, Post and CloseSend after CloseSend.
	ErrEnded = piping.ErrEnded
)

// Pipe is one running call. All methods may be called concurrently. When several goroutines
// receive, each Block goes to one of them. A method that waits is ended by its context, by the end
// of the call and by the end of the session.
//
// A Pipe comes from a session. The zero Pipe is of no use.
type Pipe piping.End

// end returns p as its session sees it.
func (p *Pipe) end() *piping.End { return (*piping.End)(p) }

// Function returns the number of the called function.
func (p *Pipe) Function() uint16 { return p.end().Function() }

// Priority returns the priority of all messages of the pipe.
func (p *Pipe) Priority() priority.Priority { return p.end().Priority() }

// MaxBlock returns the largest payload, in bytes, that the peer takes in one Block: Send fails with
// ErrTooLarge for a larger one.
func (p *Pipe) MaxBlock() int { return p.end().MaxBlock() }

// Send sends payload as one Block and keeps no part of it. It waits while the window of the pipe is
// used up, while much of the pipe has yet to leave, and while the session is at its soft limit.
// When it returns nil the Block has been accepted, not yet received. After an error nothing of it
// is sent. The errors are [ErrEnded], [ErrClosed] when the call ended well, and a *[codec.Abort]
// for everything else: ErrTooLarge, after which the pipe goes on; ErrStopped when the peer wants no
// more; ErrCanceled and ErrExpired from ctx; why the call was aborted.
func (p *Pipe) Send(ctx context.Context, payload []byte, opts ...SendOption) error {
	return p.end().Send(ctx, newOutgoing(payload, p.end().Loss(), opts))
}

// Post sends payload as one Block without ever waiting, even at the soft limit, and returns the
// state of the session's outbound direction: from [limits.Soft] on the caller should hold back,
// because beyond the hard limit the session ends. A Block that the window of the pipe does not
// admit is refused with ErrOverloaded. Otherwise the errors are those of Send.
func (p *Pipe) Post(payload []byte, opts ...SendOption) (limits.State, error) {
	return p.end().Post(newOutgoing(payload, p.end().Loss(), opts))
}

// AwaitCredit waits until the window of the pipe admits a Block, at most until ctx ends. So a
// sender can wait before a Block costs it memory. AwaitCredit sends and reserves nothing, so that
// Send may still have to wait. It returns the largest payload that the window admits without
// asking, in bytes. The errors are those of Send. It does not wait for a peer that gives no Block
// credit without being asked: then it may return 0, and Send has to ask.
func (p *Pipe) AwaitCredit(ctx context.Context) (fits int, err error) {
	return p.end().AwaitCredit(ctx)
}

// CloseSend ends this side's Blocks: the peer's Recv returns io.EOF after the last of them. It does
// not wait, and the call goes on.
func (p *Pipe) CloseSend() error { return p.end().CloseSend() }

// Recv waits for the next Block. After the peer's last one, or when the call ended well, it returns
// io.EOF. An abort discards Blocks that wait. The other errors are a *[codec.Abort]: ErrCanceled
// and ErrExpired from ctx, which ends only the wait, or why the call was aborted.
func (p *Pipe) Recv(ctx context.Context) (Block, error) {
	b, err := p.end().Recv(ctx)
	return Block{b.Payload, b.Skipped, b.Memory}, err
}

// Skipped returns how many Blocks were dropped on the way since the one that Recv returned last.
// After io.EOF it is final: it tells of Blocks dropped at the end.
func (p *Pipe) Skipped() uint64 { return p.end().Skipped() }

// Stop says that this side wants no more Blocks. Those that wait are discarded. Recv returns
// ErrStopped from now on, and so does the peer's Send. The call goes on, and so does the other
// direction. Stop does not wait.
func (p *Pipe) Stop() { p.end().Stop() }

// Pause holds Recv back, and with it the credit that the peer gets, until Unpause or the end of the
// call.
func (p *Pipe) Pause() { p.end().Pause() }

// Unpause ends a Pause.
func (p *Pipe) Unpause() { p.end().Unpause() }

// Result waits for the end of the call and returns its result, which belongs to the caller. The
// error is a *[codec.Abort]: why the call was aborted, or ErrCanceled or ErrExpired from ctx, which
// ends only the wait.
func (p *Pipe) Result(ctx context.Context) ([]byte, error) { return p.end().Result(ctx) }

// Abort ends the call from this side, whether it runs or waits, and tells the peer err. A nil err
// stands for ErrCanceled. Once the call is over, it only discards the Blocks that nobody has taken.
func (p *Pipe) Abort(err error) {
	if err == nil {
		err = codec.ErrCanceled
	}
	p.end().GiveUp(codec.AbortOf(err))
}

// Done returns a channel that is closed when the call is over.
func (p *Pipe) Done() <-chan struct{} { return p.end().Done() }

// Err returns nil while the call runs and when it has ended well, and then why it was aborted.
func (p *Pipe) Err() error { return p.end().Err() }
