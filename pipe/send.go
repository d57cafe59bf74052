package pipe

import (
	"context"
	"fmt"
	"math"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// Send sends payload as one Block and keeps no part of it. It waits while the window of the pipe is
// used up, while much of the pipe has yet to leave, and while the session is at its soft limit.
// When it returns nil the Block has been accepted, not yet received. After an error nothing of it
// is sent. The errors are [ErrEnded], [ErrClosed] when the call ended well, and a *[codec.Abort]
// for everything else: ErrTooLarge, after which the pipe goes on; ErrStopped when the peer wants no
// more; ErrCanceled and ErrExpired from ctx; why the call was aborted.
func (p *Pipe) Send(ctx context.Context, payload []byte, opts ...SendOption) error {
	return p.send(ctx, p.outgoing(payload, opts))
}

func (p *Pipe) send(ctx context.Context, b Outgoing) error {
	n := p.cost(len(b.Payload))
	if dropped := p.thin(&b, n); dropped {
		return nil
	}
	if err := p.reserve(ctx, n); err != nil {
		return err
	}
	if err := p.port.Send(ctx, b); err != nil {
		p.giveBack(n)
		p.landed()
		return p.sendError(err)
	}
	p.landed()
	return nil
}

// thin judges a Block with a loss rate for which there is no credit: a window that is used up is
// pressure. It reports whether the Block was dropped; one that was not is never judged again.
func (p *Pipe) thin(b *Outgoing, n uint64) bool {
	if b.Loss == 0 {
		return false
	}
	p.mu.Lock()
	fits := p.fitsLocked(n)
	p.mu.Unlock()
	if fits != errNoCredit {
		return false
	}
	judged := *b // a copy, so that a Block with credit costs no allocation
	dropped := p.port.Thin(&judged)
	b.Loss = judged.Loss
	return dropped
}

// Post sends payload as one Block without ever waiting, even at the soft limit, and returns the
// state of the session's outbound direction: from [limits.Soft] on the caller should hold back,
// because beyond the hard limit the session ends. A Block that the window of the pipe does not
// admit is refused with ErrOverloaded. Otherwise the errors are those of Send.
func (p *Pipe) Post(payload []byte, opts ...SendOption) (limits.State, error) {
	n := p.cost(len(payload))
	p.mu.Lock()
	err := p.admitLocked(n, false)
	p.mu.Unlock()
	if err != nil {
		return limits.Ready, err
	}
	s, err := p.port.Post(p.outgoing(payload, opts))
	if err != nil {
		p.giveBack(n)
		err = p.sendError(err)
	}
	p.landed()
	return s, err
}

// CloseSend ends this side's Blocks: the peer's Recv returns io.EOF after the last of them. It does
// not wait.
func (p *Pipe) CloseSend() error {
	p.mu.Lock()
	s, ok := p.state.next(sendEnd)
	if !ok {
		defer p.mu.Unlock()
		return p.refusalLocked()
	}
	p.state = s
	p.wakeLocked() // who waits to send learns that it is too late
	p.mu.Unlock()
	return p.sendError(p.port.CloseSend())
}

// AwaitCredit waits until the window of the pipe admits a Block, at most until ctx ends: who is
// about to make one may wait before it costs memory. It sends and reserves nothing, so that Send
// may still have to wait. It returns the largest payload that the window admits without asking, in
// bytes. The errors are those of Send. It does not wait for a peer of which no Block gets credit by
// itself: then it may return 0, and Send has to ask.
func (p *Pipe) AwaitCredit(ctx context.Context) (fits int, err error) {
	least := p.terms.PeerEarly
	err = p.await(ctx, func() (wait *signal, ask bool, err error) {
		err = p.fitsLocked(least)
		switch {
		case err == nil:
			p.credit.set() // nothing was used up: others who wait may go on too
		case err != errNoCredit:
			return nil, false, err
		case least > p.terms.PeerOverhead:
			return &p.credit, false, nil
		}
		fits = p.roomLocked()
		return nil, false, nil
	})
	return fits, err
}

// roomLocked returns the largest payload that the window admits.
func (p *Pipe) roomLocked() int {
	if left := p.limit - p.sent; p.limit > p.sent && left > p.terms.PeerOverhead {
		return int(min(left-p.terms.PeerOverhead, math.MaxInt32))
	}
	return 0
}

// reserve waits until a Block that costs n may be sent, and counts it as sent. One that costs more
// than comes by itself asks, and then others wait behind it.
func (p *Pipe) reserve(ctx context.Context, n uint64) error {
	p.mu.Lock()
	err := p.admitLocked(n, false)
	p.mu.Unlock()
	if err != errNoCredit { // mostly, there is no need to wait
		return err
	}
	asking := false
	err = p.await(ctx, func() (wait *signal, ask bool, err error) {
		err = p.admitLocked(n, asking)
		if err != errNoCredit {
			asking = asking && err != nil
			return nil, false, err
		}
		asking = asking || n > p.terms.PeerEarly && p.becomeAskerLocked(n)
		if asking {
			return &p.rare.answer, p.askLocked(), nil
		}
		return &p.credit, false, nil
	})
	if asking {
		p.giveUpAsk()
	}
	return err
}

// await waits until attempt, which is called with the lock held, returns nothing to wait for. ask
// says that a place for an Ask has to be taken.
func (p *Pipe) await(ctx context.Context, attempt func() (wait *signal, ask bool, err error)) error {
	for {
		p.mu.Lock()
		s, ask, err := attempt()
		if s == nil {
			p.mu.Unlock()
			return err
		}
		wait := s.wait()
		p.mu.Unlock()
		if ask {
			p.port.Ask()
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return p.late(ctx, s)
		}
	}
}

// late returns the error of a wait for s that ctx has ended, which says what it was for.
func (p *Pipe) late(ctx context.Context, s *signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s == &p.credit && p.state&over == 0 {
		s.set() // a signal that came at the same moment is another's
	}
	a := *codec.AbortOf(ctx.Err())
	a.Message = fmt.Sprintf("%s, waiting for the window of the pipe: the peer's application has to take more, %d bytes of %d are used", a.Message, p.sent, p.limit)
	return &a
}

// wakeLocked wakes who is the next that may send.
func (p *Pipe) wakeLocked() {
	switch {
	case p.state&over != 0: // everybody is awake
	case p.rare != nil && p.rare.asker:
		p.rare.answer.set()
	default:
		p.credit.set()
	}
}

var errNoCredit = codec.ErrOverloaded.Withf("the window of the pipe is used up: the peer has not taken earlier Blocks yet")

// admitLocked counts a Block that costs n as sent if it may be sent now: it is on its way to the
// port then, until landed. asking says that it is the asker's; others wait behind it.
func (p *Pipe) admitLocked(n uint64, asking bool) error {
	if err := p.fitsLocked(0); err != nil && err != errNoCredit {
		return err
	}
	r := p.rare
	switch {
	case r != nil && r.asker && !asking:
		return errNoCredit
	case p.limit == Unlimited || p.sent+n <= p.limit:
	case asking && p.sent+n <= r.grant:
	default:
		return errNoCredit
	}
	if asking {
		r.goLocked()
	}
	p.sent += n
	p.underWay.Add(1)
	if asking || p.sent < p.limit {
		p.credit.set() // others who wait may go on too
	}
	return nil
}

// asksNext is set in underWay for an asker who waits until nothing is.
const asksNext = 1 << 31

// landed is called when a Block that was admitted has reached the port, or was refused by it.
func (p *Pipe) landed() {
	if p.underWay.Add(^uint32(0)) != asksNext {
		return
	}
	p.mu.Lock()
	p.underWay.And(^uint32(asksNext))
	p.wakeLocked()
	p.mu.Unlock()
}

// fitsLocked returns nil if a Block that costs n fits into the window, errNoCredit if it does not,
// and why if none may be sent.
func (p *Pipe) fitsLocked(n uint64) error {
	if _, ok := p.state.next(sendBlock); !ok {
		if p.state&over == 0 {
			p.credit.set() // others who wait learn it too
		}
		return p.refusalLocked()
	}
	if p.limit != Unlimited && p.sent+n > p.limit {
		return errNoCredit
	}
	return nil
}

// giveBack takes back what admitLocked counted, for a Block that was not sent.
func (p *Pipe) giveBack(n uint64) {
	p.mu.Lock()
	p.sent -= n
	back := p.rare != nil && p.rare.spent && p.rare.giveBackLocked()
	p.wakeLocked()
	p.mu.Unlock()
	if back {
		p.port.Ask()
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

// sendError makes of an error of the port what the application should see: once the call is over,
// why.
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
