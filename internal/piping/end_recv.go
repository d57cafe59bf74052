package piping

import (
	"context"
	"io"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// Recv waits for the next Block. After the peer's last one, or when the call ended well, it returns
// io.EOF; an abort discards Blocks that wait. The other errors are a *[codec.Abort]: ErrCanceled
// and ErrExpired from ctx, which ends only the wait, or why the call was aborted.
func (e *End) Recv(ctx context.Context) (Block, error) {
	waited := false
	for {
		b, wait, err := e.take(waited)
		if wait == nil {
			return b, err
		}
		waited = true
		if e.lasting && any(ctx) == any(e.port) {
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

// Skipped returns how many Blocks were dropped on the way since the one that Recv returned last.
// After io.EOF it is final: it tells of Blocks dropped at the end.
func (e *End) Skipped() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.rare == nil:
		return 0
	case e.inbox.Len() > 0:
		return e.rare.skipped
	}
	return e.rare.skipped + e.rare.endSkipped
}

// Stop says that this side wants no more Blocks: those that wait are discarded, Recv returns
// ErrStopped from now on, and so does the peer's Send. The call goes on, and so does the other
// direction. It does not wait.
func (e *End) Stop() {
	e.mu.Lock()
	s, ok := e.state.next(sendStop)
	if !ok {
		e.mu.Unlock()
		e.discardLeft() // nothing more comes anyway
		return
	}
	e.state = s
	var a after
	e.discardLocked(&a)
	e.releaseLocked(&a)
	e.arrived.set()
	e.unlock(a)
	e.port.Stop()
}

// Pause holds Recv back, and with it the credit that the peer gets, until Resume or the end of the
// call.
func (e *End) Pause() { e.setPaused(true) }

// Resume ends a Pause.
func (e *End) Resume() { e.setPaused(false) }

func (e *End) setPaused(paused bool) {
	e.mu.Lock()
	e.paused = paused
	if e.state&over == 0 {
		e.arrived.set()
	}
	var a after
	e.answerLocked(&a)
	e.unlock(a)
}

// pausedLocked reports whether Blocks are held back. When the call is over there is nothing to hold
// back any more.
func (e *End) pausedLocked() bool { return e.paused && e.state&over == 0 }

// take returns the next Block, or an error if none will come, or else a channel to wait on. Blocks
// whose time is up are passed over. waited says that the caller has waited since the last time.
func (e *End) take(waited bool) (b Block, wait <-chan struct{}, err error) {
	for {
		e.mu.Lock()
		if waited {
			e.waiting--
			waited = false
		}
		var a after
		if e.inbox.Len() == 0 || e.pausedLocked() {
			if wait, err = e.nothingLocked(); wait != nil {
				e.waiting++
				e.answerLocked(&a)
			}
			e.unlock(a)
			return Block{}, wait, err
		}
		b = e.inbox.Pop()
		expired := !b.Expires.IsZero() && !time.Now().Before(b.Expires)
		e.skipLocked(&b, expired)
		e.inboxed -= len(b.Payload)
		a.messages, a.bytes = 1, b.Held()
		e.takenLocked(uint64(len(b.Payload))+e.terms.Overhead, &a)
		switch {
		case e.state&over != 0:
			e.takeLeftLocked(a.bytes, &a)
		case e.inbox.Len() > 0 || e.state&endedThere != 0:
			e.arrived.set() // for others who wait
		}
		e.unlock(a)
		if !expired {
			return b, nil, nil
		}
		b.Release()
	}
}

// skipLocked adds up how many Blocks are missing before b.
func (e *End) skipLocked(b *Block, expired bool) {
	r := e.rare
	if r == nil && b.Skipped == 0 && !expired {
		return
	}
	r = e.more()
	r.skipped += b.Skipped
	b.Skipped = r.skipped
	if expired {
		r.skipped++
	} else {
		r.skipped = 0
	}
}

// nothingLocked returns why there is nothing to take: a channel to wait on, or an error if nothing
// will come.
func (e *End) nothingLocked() (wait <-chan struct{}, err error) {
	switch {
	case e.pausedLocked():
	case e.abort != nil:
		return nil, e.abort
	case e.state&over != 0:
		return nil, io.EOF
	case e.state&stoppedHere != 0:
		e.arrived.set() // others who wait learn it too
		return nil, codec.ErrStopped
	case e.state&endedThere != 0:
		e.arrived.set() // likewise
		return nil, io.EOF
	}
	return e.arrived.wait(), nil
}

// discardLocked empties the inbox.
func (e *End) discardLocked(a *after) {
	a.messages, a.bytes = e.waitingLocked()
	e.inbox.Reset()
	e.taken += uint64(e.inboxed) + uint64(a.messages)*e.terms.Overhead
	e.inboxed = 0
}
