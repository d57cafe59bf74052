package piping

import (
	"context"
	"io"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
)

// Recv blocks until the next Block: see pipe.Recv.
func (e *End) Recv(ctx context.Context) (Block, error) {
	waited := false
	for {
		b, wait, err := e.take(waited)
		if wait == nil {
			if r := e.around(); r != nil && err == nil {
				return e.received(r, b)
			}
			return b, err
		}
		waited = true
		if e.in.lasting && e.port.Owns(ctx) {
			<-wait
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			e.leave()
			return Block{}, codec.AbortOf(ctx.Err())
		}
	}
}

// take returns the next Block, or an error if none will come, or else a channel to wait for. It
// skips expired Blocks. waited reports that the caller has waited since the last call.
func (e *End) take(waited bool) (b Block, wait <-chan struct{}, err error) {
	for {
		var a deferred
		e.mu.Lock()
		if waited {
			e.in.waiting--
			waited = false
		}
		if e.in.inbox.Len() == 0 || e.pausedLocked() {
			wait, err = e.waitLocked(&a)
			e.unlock(a)
			return Block{}, wait, err
		}
		b, expired := e.popLocked(&a)
		e.unlock(a)
		if !expired {
			return b, nil, nil
		}
		b.Release()
	}
}

// waitLocked returns a channel on which the caller waits for a Block, or an error if none will
// come.
func (e *End) waitLocked(a *deferred) (wait <-chan struct{}, err error) {
	if r := e.unseenLocked(); r != nil && e.state.over() {
		e.in.waiting++
		return r.seen, nil
	}
	if err := e.nothingLocked(); err != nil {
		return nil, err
	}
	wait = e.in.arrived.wait()
	e.in.waiting++
	e.in.refill(e.state, e.terms, a)
	e.in.grantRest(e.state, e.terms, a)
	return wait, nil
}

// nothingLocked returns the reason for which no Block will come, or nil.
func (e *End) nothingLocked() error {
	switch {
	case e.pausedLocked():
	case e.abort != nil:
		return e.abort
	case e.state.over():
		if x := e.in.extras; x != nil && x.lost != nil {
			return x.lost
		}
		return io.EOF
	case e.state&stoppedHere != 0:
		e.in.arrived.set() // wakes further receivers
		return codec.ErrStopped
	case e.state&endedThere != 0:
		e.in.arrived.set() // likewise
		return io.EOF
	}
	return nil
}

// popLocked removes a Block from the inbox, which is not empty, and reports whether the Block has
// expired.
func (e *End) popLocked(a *deferred) (b Block, expired bool) {
	b = e.in.pop()
	expired = !b.Expires.IsZero() && !time.Now().Before(b.Expires)
	e.in.skip(&b, expired)
	a.messages, a.bytes = 1, b.Held()
	e.in.took(e.state, e.terms, e.terms.cost(len(b.Payload)), a)
	switch {
	case e.state.over() && e.in.inbox.Len() == 0:
		e.forgetLeftLocked(a)
	case e.state.over():
		e.terms.left.Load().took(e.leftLocked())
	case e.in.inbox.Len() > 0 || e.state&endedThere != 0:
		e.in.arrived.set() // wakes a further receiver
	}
	return b, expired
}

// leave is called by a receiver that stops waiting because its context has ended.
func (e *End) leave() {
	e.mu.Lock()
	e.in.waiting--
	e.moveDebtAndUnlock(deferred{})
}

// moveDebtAndUnlock moves the debt of a Block for which no receiver waits, and does a.
func (e *End) moveDebtAndUnlock(a deferred) {
	unplaced := e.in.moveDebt(e.state, e.terms, &a)
	e.unlock(a)
	if unplaced == 0 {
		return
	}
	reserved := e.terms.Ledger.Reserve(unplaced)
	a = deferred{}
	e.mu.Lock()
	a.abort = e.in.placeDebt(e.state, e.terms, unplaced, reserved, e.evicted, &a)
	e.unlock(a)
}

// evicted is called when another pipe needs the room of a Block that no receiver takes.
func (e *End) evicted(bool) {
	e.mu.Lock()
	b := &e.in.extras.arriving
	b.idle = nil
	a := deferred{abort: b.debt > 0 && b.source == flow.Large && !b.underway && !e.in.takes(e.state)}
	e.unlock(a)
}

// Skipped returns the number of Blocks dropped in transit: see pipe.Skipped.
func (e *End) Skipped() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch s := e.in.extras; {
	case s == nil:
		return 0
	case e.in.inbox.Len() > 0:
		return s.skipped
	default:
		return s.skipped + s.endSkipped
	}
}

// Waiting returns the number and the bytes of the Blocks in the inbox.
func (e *End) Waiting() (messages, bytes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.in.held()
}

// Stop rejects further Blocks from the peer: see pipe.Stop.
func (e *End) Stop() {
	e.mu.Lock()
	s, ok := e.state.next(sendStop)
	if !ok {
		e.mu.Unlock()
		e.discardLeft() // no Block can arrive any more
		return
	}
	e.state = s
	var a deferred
	arriving := e.in.arriving() != nil
	e.in.discard(e.terms, &a)
	e.in.release(s, e.terms, &a)
	e.in.arrived.set()
	e.unlock(a)
	e.port.Stop(arriving)
}

// StopReading blocks Recv until StartReading: see pipe.Pipe.StopReading.
func (e *End) StopReading() { e.setPaused(true) }

// StartReading ends StopReading.
func (e *End) StartReading() { e.setPaused(false) }

// setPaused sets whether Recv is paused.
func (e *End) setPaused(paused bool) {
	e.mu.Lock()
	e.in.paused = paused
	if !e.state.over() {
		e.in.arrived.set()
	}
	var a deferred
	e.in.grantRest(e.state, e.terms, &a)
	e.moveDebtAndUnlock(a)
}

// pausedLocked reports whether Blocks are withheld from receivers. After the end of the call they
// are not.
func (e *End) pausedLocked() bool { return e.in.paused && !e.state.over() }

// BeginHandler gives a window to the pipe of a handler that is about to run.
func (e *End) BeginHandler(h flow.Window) {
	if e.terms.Budget == nil {
		return
	}
	var a deferred
	e.mu.Lock()
	e.in.begin(e.state, e.terms, h, &a)
	e.unlock(a)
}

// Controls passes the pending Controls of e to put, when they depart. id is the id of the pipe.
func (e *End) Controls(id uint64, put func(message.Control)) {
	e.mu.Lock()
	credit := e.in.tell()
	granted, wants := e.in.granted, e.state.wants()
	e.mu.Unlock()
	if !wants {
		return
	}
	if credit {
		put(message.Credit{Pipe: id, Limit: granted})
	}
}

// claimGranted is called when the claim for the Block that arrives is granted.
func (e *End) claimGranted(bool) {
	var a deferred
	e.mu.Lock()
	e.in.claimed(e.state, e.terms, &a)
	e.unlock(a)
}

// deferred is the work to do after the lock of an End is released.
type deferred struct {
	claims          []*flow.Waiter // that were granted
	announce        bool           // there are Controls for the peer
	messages, bytes int            // taken by the application
	unused          int            // reserved bytes of the Ledger to release
	// bytes of a Block that move to the reserved ones, and back: they count either there or as
	// those of a message, which would stop the reader though the peer was granted room
	moved, reserved int
	abort           bool        // there is no room for a Block that the peer was allowed
	show            bool        // interceptors are to see the outcome
	watchLeft       bool        // the call has ended with untaken Blocks
	forgets         func() bool // stops waiting for the end of the context of Open
}

// grant adds the granted claims of other Ends.
func (a *deferred) grant(claims []*flow.Waiter) {
	if len(claims) > 0 {
		a.claims = append(a.claims, claims...)
	}
}

// do does everything but the abort. It is called without a lock.
func (a *deferred) do(t *Terms, port Port) {
	if n := a.reserved + a.unused; n > 0 {
		t.Ledger.Reserve(-n)
	}
	if n := a.moved - a.reserved; n != 0 {
		t.Ledger.Taken(0, n)
	}
	if a.messages > 0 || a.bytes > 0 {
		t.Ledger.Taken(a.messages, a.bytes)
	}
	if a.announce {
		port.Announce()
	}
	flow.Grant(a.claims)
}
