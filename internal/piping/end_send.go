package piping

import (
	"context"
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// errNoCredit means that the window is used up. Post returns it.
var errNoCredit = codec.ErrOverloaded.Withf("the window of the pipe is used up: the peer has not taken earlier Blocks yet")

// Send sends a Block: see pipe.Send. It keeps no reference to the payload unless that has Memory.
func (e *End) Send(ctx context.Context, b Outgoing) error {
	if r := e.around(); r != nil {
		return e.sendAround(ctx, r, b)
	}
	return e.send(ctx, b)
}

// send is Send behind the interceptors.
func (e *End) send(ctx context.Context, b Outgoing) error {
	n := e.terms.peerCost(len(b.Payload))
	if dropped := e.thin(&b, n); dropped {
		return nil
	}
	switch err := e.admit(n); {
	case err == nil: // the common case: no need to wait
	case err != errNoCredit:
		return err
	case n > e.terms.PeerEarly:
		return e.sendDivided(ctx, b)
	default:
		if err := e.reserve(ctx, n); err != nil {
			return err
		}
	}
	err := e.port.Send(ctx, b)
	if err != nil {
		e.undo(n)
	}
	e.landed()
	return e.sendError(err)
}

// Give is Send for the first n bytes of mem, and takes over mem, unless there is an error.
func (e *End) Give(ctx context.Context, mem *buffer.Buffer, n int) error {
	return e.Send(ctx, Outgoing{Payload: mem.B[:n], Memory: mem, Loss: e.loss})
}

// Post sends a Block without blocking: see pipe.Post.
func (e *End) Post(b Outgoing) (limits.State, error) {
	if r := e.around(); r != nil {
		return e.postAround(r, b)
	}
	return e.post(b)
}

// post is Post behind the interceptors.
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
	e.wakeLocked() // waiting senders get the error
	e.mu.Unlock()
	return e.sendError(e.port.CloseSend())
}

// AwaitCredit blocks until the window has room for a Block: see pipe.AwaitCredit.
func (e *End) AwaitCredit(ctx context.Context) (fits int, err error) {
	least := e.terms.PeerEarly
	err = e.await(ctx, func() (wait *signal, err error) {
		switch err = e.fitsLocked(least); {
		case err == nil:
			e.out.pass() // no credit was used: further senders may continue, too
		case err != errNoCredit:
			return nil, err
		case least > e.terms.PeerOverhead:
			return &e.out.waiters().credit, nil
		}
		fits = e.out.room(e.terms.PeerOverhead)
		return nil, nil
	})
	if r := e.around(); r != nil && err != nil {
		err = e.refusal(ctx, r, err)
	}
	return fits, err
}

// thin judges a Block with a loss rate for which there is no credit: a used up window counts as
// pressure. It reports whether the Block was dropped. A Block that passes is never judged again.
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
	judged := *b // a copy, so that a Block with credit needs no allocation
	dropped := e.port.Thin(&judged)
	b.Loss = judged.Loss
	return dropped
}

// reserve blocks until a Block of cost n may be sent, and counts it as sent.
func (e *End) reserve(ctx context.Context, n uint64) error {
	return e.await(ctx, func() (wait *signal, err error) {
		if err = e.admitLocked(n); err == errNoCredit {
			return &e.out.waiters().credit, nil
		}
		return nil, err
	})
}

// await blocks until attempt, which is called with the lock held, returns no signal to wait for.
func (e *End) await(ctx context.Context, attempt func() (wait *signal, err error)) error {
	for {
		e.mu.Lock()
		s, err := attempt()
		if s == nil {
			e.mu.Unlock()
			return err
		}
		wait := s.wait()
		e.mu.Unlock()
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

// late returns the error of a wait for s that ctx has ended. The error names the awaited window.
func (e *End) late(ctx context.Context, s *signal) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == &e.out.queue.credit && !e.state.over() {
		s.set() // a signal of the same moment is for another sender
	}
	a := *codec.AbortOf(ctx.Err())
	if s == &e.out.queue.credit && e.out.isDivided() {
		a.Message += ", waiting for another Block of the pipe, which waits for the window: the peer's application has to take more"
		return &a
	}
	a.Message = fmt.Sprintf("%s, waiting for the window of the pipe: the peer's application has to take more, %d bytes of %d are used", a.Message, e.out.sent, e.out.limit)
	return &a
}

// admit counts a Block of cost n as sent if the Block may be sent now. Then the Block is under way
// to the port until landed is called.
func (e *End) admit(n uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.admitLocked(n)
}

func (e *End) admitLocked(n uint64) error {
	if err := e.closedLocked(); err != nil {
		return err
	}
	if !e.out.admit(n) {
		return errNoCredit
	}
	e.inflight.begin()
	return nil
}

// landed is called when an admitted Block has reached the port, or was rejected by it.
func (e *End) landed() {
	if !e.inflight.end() {
		return
	}
	e.mu.Lock()
	e.inflight.calmLocked()
	e.wakeLocked()
	e.mu.Unlock()
}

// fitsLocked returns nil if a Block of cost n may be sent now, errNoCredit if it has to wait, and
// the reason if no Block may be sent.
func (e *End) fitsLocked(n uint64) error {
	if err := e.closedLocked(); err != nil {
		return err
	}
	if !e.out.fits(n) || e.out.isDivided() {
		return errNoCredit
	}
	return nil
}

// undo reverts admit, for a Block that was not sent.
func (e *End) undo(n uint64) {
	e.mu.Lock()
	e.out.sent -= n
	spare := e.spareLocked() > 0
	e.wakeLocked()
	e.mu.Unlock()
	if spare {
		e.port.Watch()
	}
}

// spareLocked returns the credit of this side beyond the credit that the peer always grants.
func (e *End) spareLocked() uint64 {
	_, ok := e.state.next(sendBlock)
	if !ok || e.out.limit == Unlimited || e.out.limit <= e.out.sent+e.terms.PeerEarly {
		return 0
	}
	return e.out.limit - e.out.sent - e.terms.PeerEarly
}

// Dropped reverts the accounting of a Block with the given payload. Send or Post has accepted the
// Block, and it was dropped before it departed. Without Dropped, its credit would be lost, because
// the peer does not grant it again.
func (e *End) Dropped(payload int) { e.undo(e.terms.peerCost(payload)) }

// wakeLocked wakes the sender that may continue next. After the end of the call all senders are
// awake.
func (e *End) wakeLocked() {
	if !e.state.over() {
		e.out.wake()
	}
}

// closed returns the reason for which no Block may be sent, or nil.
func (e *End) closed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closedLocked()
}

// closedLocked returns the reason for which no Block may be sent, or nil.
func (e *End) closedLocked() error {
	if _, ok := e.state.next(sendBlock); ok {
		return nil
	}
	if !e.state.over() {
		e.out.pass() // wakes further senders
	}
	return e.refusalLocked()
}

// refusalLocked returns the reason for which nothing may be sent.
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

// sendError converts an error of the port for the application. After the end of the call it returns
// the outcome.
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
