package piping

import (
	"context"
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// errNoCredit says that the window is used up. Post returns it.
var errNoCredit = codec.ErrOverloaded.Withf("the window of the pipe is used up: the peer has not taken earlier Blocks yet")

// Send sends a Block: see pipe.Send. It keeps no part of the payload unless that has Memory.
func (e *End) Send(ctx context.Context, b Outgoing) error {
	if r := e.around(); r != nil {
		return e.sendAround(ctx, r, b)
	}
	return e.send(ctx, b)
}

// send is Send for what is sent in the end.
func (e *End) send(ctx context.Context, b Outgoing) error {
	n := e.terms.peerCost(len(b.Payload))
	if dropped := e.thin(&b, n); dropped {
		return nil
	}
	if err := e.reserve(ctx, n); err != nil {
		return err
	}
	if err := e.port.Send(ctx, b); err != nil {
		e.undo(n)
		e.landed()
		return e.sendError(err)
	}
	e.landed()
	return nil
}

// Give is Send for the first n bytes of mem, which is given away with them, unless there is an
// error.
func (e *End) Give(ctx context.Context, mem *buffer.Buffer, n int) error {
	return e.Send(ctx, Outgoing{Payload: mem.B[:n], Memory: mem, Loss: e.loss})
}

// Post sends a Block without waiting: see pipe.Post.
func (e *End) Post(b Outgoing) (limits.State, error) {
	if r := e.around(); r != nil {
		return e.postAround(r, b)
	}
	return e.post(b)
}

// post is Post for what is sent in the end.
func (e *End) post(b Outgoing) (limits.State, error) {
	n := e.terms.peerCost(len(b.Payload))
	if err := e.admit(n); err != nil {
		return limits.Ready, err
	}
	s, err := e.port.Post(b)
	if err != nil {
		e.undo(n)
		err = e.sendError(err)
	}
	e.landed()
	return s, err
}

// CloseSend ends this side's Blocks: see pipe.CloseSend.
func (e *End) CloseSend() error {
	e.mu.Lock()
	s, ok := e.state.next(sendEnd)
	if !ok {
		defer e.mu.Unlock()
		return e.refusalLocked()
	}
	e.state = s
	e.wakeLocked() // senders that wait learn that it is too late
	e.mu.Unlock()
	return e.sendError(e.port.CloseSend())
}

// AwaitCredit waits until the window admits a Block: see pipe.AwaitCredit.
func (e *End) AwaitCredit(ctx context.Context) (fits int, err error) {
	least := e.terms.PeerEarly
	err = e.await(ctx, func() (wait *signal, ask bool, err error) {
		switch err = e.fitsLocked(least); {
		case err == nil:
			e.out.pass() // nothing was used up: others who wait may go on too
		case err != errNoCredit:
			return nil, false, err
		case least > e.terms.PeerOverhead:
			return &e.out.waiters().credit, false, nil
		}
		fits = e.out.room(e.terms.PeerOverhead)
		return nil, false, nil
	})
	if r := e.around(); r != nil && err != nil {
		err = e.refusal(ctx, r, err)
	}
	return fits, err
}

// thin judges a Block with a loss rate for which there is no credit: a window that is used up is
// pressure. It reports whether the Block was dropped. One that was not is never judged again.
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

// reserve waits until a Block that costs n may be sent, and counts it as sent. One that costs more
// than comes by itself asks, and then others wait behind it.
func (e *End) reserve(ctx context.Context, n uint64) error {
	if err := e.admit(n); err != errNoCredit { // mostly, there is no need to wait
		return err
	}
	asking := false
	err := e.await(ctx, func() (wait *signal, ask bool, err error) {
		err = e.admitLocked(n, asking)
		if err != errNoCredit {
			asking = asking && err != nil
			return nil, false, err
		}
		q := e.out.waiters()
		asking = asking || n > e.terms.PeerEarly && q.asking.begin(n)
		if asking {
			return &q.asking.answer, q.asking.place(&e.underWay), nil
		}
		return &q.credit, false, nil
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
		e.terms.Waiting.Add(1)
		select {
		case <-wait:
		case <-ctx.Done():
			err = e.late(ctx, s)
		}
		e.terms.Waiting.Add(-1)
		if err != nil {
			return err
		}
	}
}

// late returns the error of a wait for s that ctx has ended. It says what the wait was for.
func (e *End) late(ctx context.Context, s *signal) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == &e.out.queue.credit && !e.state.over() {
		s.set() // a signal that came at the same moment is another's
	}
	a := *codec.AbortOf(ctx.Err())
	a.Message = fmt.Sprintf("%s, waiting for the window of the pipe: the peer's application has to take more, %d bytes of %d are used", a.Message, e.out.sent, e.out.limit)
	return &a
}

// admit counts a Block that costs n as sent if it may be sent now. It is on its way to the port
// then, until landed is called.
func (e *End) admit(n uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.admitLocked(n, false)
}

// admitLocked is admit. asking says that the Block is the asker's.
func (e *End) admitLocked(n uint64, asking bool) error {
	if err := e.closedLocked(); err != nil {
		return err
	}
	if !e.out.admit(n, asking) {
		return errNoCredit
	}
	e.underWay.begin()
	return nil
}

// landed is called when a Block that was admitted has reached the port, or was refused by it.
func (e *End) landed() {
	if !e.underWay.end() {
		return
	}
	e.mu.Lock()
	e.underWay.calmLocked()
	e.wakeLocked()
	e.mu.Unlock()
}

// fitsLocked returns nil if a Block that costs n fits into the window, errNoCredit if it does not,
// and why if none may be sent.
func (e *End) fitsLocked(n uint64) error {
	if err := e.closedLocked(); err != nil {
		return err
	}
	if !e.out.fits(n) {
		return errNoCredit
	}
	return nil
}

// undo takes back what admit counted, for a Block that was not sent.
func (e *End) undo(n uint64) {
	e.mu.Lock()
	back := e.out.undo(n)
	e.wakeLocked()
	e.mu.Unlock()
	if back {
		e.port.Ask()
	}
}

// Dropped takes back what a Block with so many bytes of payload was counted as. Send or Post has
// accepted it, and it was dropped before it left: the peer will never grant it again.
func (e *End) Dropped(payload int) { e.undo(e.terms.peerCost(payload)) }

// giveUpAsk is called by the asker if it does not send.
func (e *End) giveUpAsk() {
	e.mu.Lock()
	back := e.out.queue.asking.end()
	e.wakeLocked()
	e.mu.Unlock()
	if back {
		e.port.Ask()
	}
}

// Asking returns what the Ask says whose place is reached, with sent being the low bits of the cost
// of what has departed in this direction. ok is false if it is not to be sent.
func (e *End) Asking(sent uint32) (departed, total uint64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := &e.out.queue.asking
	a.places--
	if a.places > 0 || e.state&(over|stoppedThere) != 0 {
		return 0, 0, false
	}
	departed = e.out.sent - uint64(uint32(e.out.sent)-sent)
	total, ok = a.reach(departed, e.out.limit)
	return departed, total, ok
}

// wakeLocked wakes the sender that may go on next. When the call is over, everybody is awake.
func (e *End) wakeLocked() {
	if !e.state.over() {
		e.out.wake()
	}
}

// closed returns why no Block may be sent, or nil.
func (e *End) closed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closedLocked()
}

// closedLocked returns why no Block may be sent, or nil.
func (e *End) closedLocked() error {
	if _, ok := e.state.next(sendBlock); ok {
		return nil
	}
	if !e.state.over() {
		e.out.pass() // others who wait learn it too
	}
	return e.refusalLocked()
}

// refusalLocked says why nothing may be sent.
func (e *End) refusalLocked() error {
	switch {
	case e.abort != nil:
		return e.abort
	case e.state.over():
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
	if e.state.over() {
		return e.refusalLocked()
	}
	return err
}
