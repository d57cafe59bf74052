package pipe

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// Send sends payload as one Block and keeps no part of it. It waits while the window of the pipe is used up, while much of the pipe has yet to leave, and while
// the session is at its soft limit. When it returns nil the Block has been accepted, not yet received. After an error nothing of it is sent. The errors are
// [ErrEnded], [ErrClosed] when the call ended well, and a *[codec.Abort] for everything else: ErrTooLarge, after which the pipe goes on; ErrStopped when the peer
// wants no more; ErrCanceled and ErrExpired from ctx; why the call was aborted.
func (p *Pipe) Send(ctx context.Context, payload []byte, opts ...SendOption) error {
	return p.send(ctx, p.outgoing(payload, opts))
}

func (p *Pipe) send(ctx context.Context, b Outgoing) error {
	n := cost(b.Payload)
	if err := p.reserve(ctx, n); err != nil {
		return err
	}
	if err := p.port.Send(ctx, b); err != nil {
		p.giveBack(n)
		return p.sendError(err)
	}
	return nil
}

// Post sends payload as one Block without ever waiting, even at the soft limit, and returns the state of the session's outbound direction: from
// [limits.Soft] on the caller should hold back, because beyond the hard limit the session ends. A Block that the window of the pipe does not admit is refused
// with ErrOverloaded. Otherwise the errors are those of Send.
func (p *Pipe) Post(payload []byte, opts ...SendOption) (limits.State, error) {
	n := cost(payload)
	p.mu.Lock()
	err := p.admitLocked(n)
	p.mu.Unlock()
	if err != nil {
		return limits.Ready, err
	}
	s, err := p.port.Post(p.outgoing(payload, opts))
	if err != nil {
		p.giveBack(n)
		return s, p.sendError(err)
	}
	return s, nil
}

// CloseSend ends this side's Blocks: the peer's Recv returns io.EOF after the last of them. It does not wait.
func (p *Pipe) CloseSend() error {
	p.mu.Lock()
	s, ok := p.state.next(sendEnd)
	if !ok {
		defer p.mu.Unlock()
		return p.refusalLocked()
	}
	p.state = s
	p.credit.set() // who waits to send learns that it is too late
	p.mu.Unlock()
	return p.sendError(p.port.CloseSend())
}

// AwaitCredit waits until the window of the pipe admits a Block, at most until ctx ends: who is about to make one may wait before it costs memory. It sends and reserves nothing, so that Send may still
// have to wait. The errors are those of Send.
func (p *Pipe) AwaitCredit(ctx context.Context) error { return p.reserve(ctx, 0) }

// reserve waits until a Block that costs n may be sent, and counts it as sent.
func (p *Pipe) reserve(ctx context.Context, n uint64) error {
	for {
		p.mu.Lock()
		err := p.admitLocked(n)
		if err != errNoCredit {
			p.mu.Unlock()
			return err
		}
		wait := p.credit.wait()
		p.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return codec.AbortOf(ctx.Err())
		}
	}
}

var errNoCredit = codec.ErrOverloaded.Withf("the window of the pipe is used up: the peer has not taken earlier Blocks yet")

// admitLocked counts a Block that costs n as sent if it may be sent now.
func (p *Pipe) admitLocked(n uint64) error {
	if _, ok := p.state.next(sendBlock); !ok {
		if p.state&over == 0 {
			p.credit.set() // others who wait learn it too
		}
		return p.refusalLocked()
	}
	if p.limit > 0 && p.sent >= p.limit {
		return errNoCredit
	}
	p.sent += n
	if p.sent < p.limit {
		p.credit.set() // others who wait may go on too
	}
	return nil
}

// giveBack takes back what admitLocked counted, for a Block that was not sent.
func (p *Pipe) giveBack(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent -= n
	if p.state&over == 0 {
		p.credit.set()
	}
}

// refusalLocked says why nothing may be sent.
func (p *Pipe) refusalLocked() error {
	switch {
	case p.abort != nil:
		return p.abort
	case p.state&over != 0:
		return ErrClosed
	case p.state&endedHere != 0:
		return ErrEnded
	default:
		return codec.ErrStopped.Withf("the peer wants no more Blocks of this pipe")
	}
}

// sendError makes of an error of the port what the application should see: once the call is over, why.
func (p *Pipe) sendError(err error) error {
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state&over != 0 {
		return p.refusalLocked()
	}
	return err
}
