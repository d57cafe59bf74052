package piping

import (
	"context"
	"fmt"
	"math"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// Send is pipe.Send.
func (e *End) Send(ctx context.Context, b Outgoing) error {
	n := e.cost(len(b.Payload))
	if dropped := e.thin(&b, n); dropped {
		return nil
	}
	if err := e.reserve(ctx, n); err != nil {
		return err
	}
	if err := e.port.Send(ctx, b); err != nil {
		e.giveBack(n)
		e.landed()
		return e.sendError(err)
	}
	e.landed()
	return nil
}

// thin judges a Block with a loss rate for which there is no credit: a window that is used up is
// pressure. It reports whether the Block was dropped; one that was not is never judged again.
func (e *End) thin(b *Outgoing, n uint64) bool {
	if b.Loss == 0 {
		return false
	}
	e.mu.Lock()
	fits := e.fitsLocked(n)
	e.mu.Unlock()
	if fits != errNoCredit {
		return false
	}
	judged := *b // a copy, so that a Block with credit costs no allocation
	dropped := e.port.Thin(&judged)
	b.Loss = judged.Loss
	return dropped
}

// Post is pipe.Post.
func (e *End) Post(b Outgoing) (limits.State, error) {
	n := e.cost(len(b.Payload))
	e.mu.Lock()
	err := e.admitLocked(n, false)
	e.mu.Unlock()
	if err != nil {
		return limits.Ready, err
	}
	s, err := e.port.Post(b)
	if err != nil {
		e.giveBack(n)
		err = e.sendError(err)
	}
	e.landed()
	return s, err
}

// CloseSend ends this side's Blocks: the peer's Recv returns io.EOF after the last of them. It does
// not wait.
func (e *End) CloseSend() error {
	e.mu.Lock()
	s, ok := e.state.next(sendEnd)
	if !ok {
		defer e.mu.Unlock()
		return e.refusalLocked()
	}
	e.state = s
	e.wakeLocked() // who waits to send learns that it is too late
	e.mu.Unlock()
	return e.sendError(e.port.CloseSend())
}

// AwaitCredit waits until the window of the pipe admits a Block, at most until ctx ends: who is
// about to make one may wait before it costs memory. It sends and reserves nothing, so that Send
// may still have to wait. It returns the largest payload that the window admits without asking, in
// bytes. The errors are those of Send. It does not wait for a peer of which no Block gets credit by
// itself: then it may return 0, and Send has to ask.
func (e *End) AwaitCredit(ctx context.Context) (fits int, err error) {
	least := e.terms.PeerEarly
	err = e.await(ctx, func() (wait *signal, ask bool, err error) {
		err = e.fitsLocked(least)
		switch {
		case err == nil:
			e.credit.set() // nothing was used up: others who wait may go on too
		case err != errNoCredit:
			return nil, false, err
		case least > e.terms.PeerOverhead:
			return &e.credit, false, nil
		}
		fits = e.roomLocked()
		return nil, false, nil
	})
	return fits, err
}

// roomLocked returns the largest payload that the window admits.
func (e *End) roomLocked() int {
	if left := e.limit - e.sent; e.limit > e.sent && left > e.terms.PeerOverhead {
		return int(min(left-e.terms.PeerOverhead, math.MaxInt32))
	}
	return 0
}

// reserve waits until a Block that costs n may be sent, and counts it as sent. One that costs more
// than comes by itself asks, and then others wait behind it.
func (e *End) reserve(ctx context.Context, n uint64) error {
	e.mu.Lock()
	err := e.admitLocked(n, false)
	e.mu.Unlock()
	if err != errNoCredit { // mostly, there is no need to wait
		return err
	}
	asking := false
	err = e.await(ctx, func() (wait *signal, ask bool, err error) {
		err = e.admitLocked(n, asking)
		if err != errNoCredit {
			asking = asking && err != nil
			return nil, false, err
		}
		asking = asking || n > e.terms.PeerEarly && e.becomeAskerLocked(n)
		if asking {
			return &e.rare.answer, e.askLocked(), nil
		}
		return &e.credit, false, nil
	})
	if asking {
		e.giveUpAsk()
	}
	return err
}

// await waits until attempt, which is called with the lock held, returns nothing to wait for. ask
// says that a place for an Ask has to be taken.
func (e *End) await(ctx context.Context, attempt func() (wait *signal, ask bool, err error)) error {
	for {
		e.mu.Lock()
		s, ask, err := attempt()
		if s == nil {
			e.mu.Unlock()
			return err
		}
		wait := s.wait()
		e.mu.Unlock()
		if ask {
			e.port.Ask()
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return e.late(ctx, s)
		}
	}
}

// late returns the error of a wait for s that ctx has ended, which says what it was for.
func (e *End) late(ctx context.Context, s *signal) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == &e.credit && e.state&over == 0 {
		s.set() // a signal that came at the same moment is another's
	}
	a := *codec.AbortOf(ctx.Err())
	a.Message = fmt.Sprintf("%s, waiting for the window of the pipe: the peer's application has to take more, %d bytes of %d are used", a.Message, e.sent, e.limit)
	return &a
}

// wakeLocked wakes who is the next that may send.
func (e *End) wakeLocked() {
	switch {
	case e.state&over != 0: // everybody is awake
	case e.rare != nil && e.rare.asker:
		e.rare.answer.set()
	default:
		e.credit.set()
	}
}

var errNoCredit = codec.ErrOverloaded.Withf("the window of the pipe is used up: the peer has not taken earlier Blocks yet")

// admitLocked counts a Block that costs n as sent if it may be sent now: it is on its way to the
// port then, until landed. asking says that it is the asker's; others wait behind it.
func (e *End) admitLocked(n uint64, asking bool) error {
	if err := e.fitsLocked(0); err != nil && err != errNoCredit {
		return err
	}
	r := e.rare
	switch {
	case r != nil && r.asker && !asking:
		return errNoCredit
	case e.limit == Unlimited || e.sent+n <= e.limit:
	case asking && e.sent+n <= r.grant:
	default:
		return errNoCredit
	}
	if asking {
		r.goLocked()
	}
	e.sent += n
	e.underWay.Add(1)
	if asking || e.sent < e.limit {
		e.credit.set() // others who wait may go on too
	}
	return nil
}

// asksNext is set in underWay for an asker who waits until nothing is.
const asksNext = 1 << 31

// landed is called when a Block that was admitted has reached the port, or was refused by it.
func (e *End) landed() {
	if e.underWay.Add(^uint32(0)) != asksNext {
		return
	}
	e.mu.Lock()
	e.underWay.And(^uint32(asksNext))
	e.wakeLocked()
	e.mu.Unlock()
}

// fitsLocked returns nil if a Block that costs n fits into the window, errNoCredit if it does not,
// and why if none may be sent.
func (e *End) fitsLocked(n uint64) error {
	if _, ok := e.state.next(sendBlock); !ok {
		if e.state&over == 0 {
			e.credit.set() // others who wait learn it too
		}
		return e.refusalLocked()
	}
	if e.limit != Unlimited && e.sent+n > e.limit {
		return errNoCredit
	}
	return nil
}

// giveBack takes back what admitLocked counted, for a Block that was not sent.
func (e *End) giveBack(n uint64) {
	e.mu.Lock()
	e.sent -= n
	back := e.rare != nil && e.rare.spent && e.rare.giveBackLocked()
	e.wakeLocked()
	e.mu.Unlock()
	if back {
		e.port.Ask()
	}
}

// refusalLocked says why nothing may be sent.
func (e *End) refusalLocked() error {
	switch {
	case e.abort != nil:
		return e.abort
	case e.state&over != 0:
		return ErrClosed
	case e.state&endedHere != 0:
		return ErrEnded
	default:
		return codec.ErrStopped.Withf("the peer wants no more Blocks of this pipe")
	}
}

// sendError makes of an error of the port what the application should see: once the call is over,
// why.
func (e *End) sendError(err error) error {
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state&over != 0 {
		return e.refusalLocked()
	}
	return err
}
