package pipe

import (
	"context"
	"io"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// Recv waits for the next Block. After the peer's last one, or when the call ended well, it returns
// io.EOF; an abort discards Blocks that wait. The other errors are a *[codec.Abort]: ErrCanceled
// and ErrExpired from ctx, which ends only the wait, or why the call was aborted.
func (p *Pipe) Recv(ctx context.Context) (Block, error) {
	waited := false
	for {
		b, wait, err := p.take(waited)
		if wait == nil {
			return b, err
		}
		waited = true
		if p.lasting && any(ctx) == any(p.port) {
			<-wait
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			p.leave()
			return Block{}, codec.AbortOf(ctx.Err())
		}
	}
}

// Skipped returns how many Blocks were dropped on the way since the one that Recv returned last.
// After io.EOF it is final: it tells of Blocks dropped at the end.
func (p *Pipe) Skipped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.rare == nil:
		return 0
	case p.inbox.Len() > 0:
		return p.rare.skipped
	}
	return p.rare.skipped + p.rare.endSkipped
}

// Stop says that this side wants no more Blocks: those that wait are discarded, Recv returns
// ErrStopped from now on, and so does the peer's Send. The call goes on, and so does the other
// direction. It does not wait.
func (p *Pipe) Stop() {
	p.mu.Lock()
	s, ok := p.state.next(sendStop)
	if !ok {
		p.mu.Unlock()
		p.discardLeft() // nothing more comes anyway
		return
	}
	p.state = s
	var a after
	p.discardLocked(&a)
	p.releaseLocked(&a)
	p.arrived.set()
	(*End)(p).unlock(a)
	p.port.Stop()
}

// Pause holds Recv back, and with it the credit that the peer gets, until Resume or the end of the
// call.
func (p *Pipe) Pause() { p.setPaused(true) }

// Resume ends a Pause.
func (p *Pipe) Resume() { p.setPaused(false) }

func (p *Pipe) setPaused(paused bool) {
	p.mu.Lock()
	p.paused = paused
	if p.state&over == 0 {
		p.arrived.set()
	}
	var a after
	p.answerLocked(&a)
	(*End)(p).unlock(a)
}

// pausedLocked reports whether Blocks are held back. When the call is over there is nothing to hold
// back any more.
func (p *Pipe) pausedLocked() bool { return p.paused && p.state&over == 0 }

// take returns the next Block, or an error if none will come, or else a channel to wait on. Blocks
// whose time is up are passed over. waited says that the caller has waited since the last time.
func (p *Pipe) take(waited bool) (b Block, wait <-chan struct{}, err error) {
	for {
		p.mu.Lock()
		if waited {
			p.waiting--
			waited = false
		}
		var a after
		if p.inbox.Len() == 0 || p.pausedLocked() {
			if wait, err = p.nothingLocked(); wait != nil {
				p.waiting++
				p.answerLocked(&a)
			}
			(*End)(p).unlock(a)
			return Block{}, wait, err
		}
		b = p.inbox.Pop()
		expired := !b.expires.IsZero() && !time.Now().Before(b.expires)
		p.skipLocked(&b, expired)
		p.inboxed -= len(b.Payload)
		a.messages, a.bytes = 1, b.Held()
		p.takenLocked(uint64(len(b.Payload))+p.terms.Overhead, &a)
		switch {
		case p.state&over != 0:
			p.takeLeftLocked(a.bytes, &a)
		case p.inbox.Len() > 0 || p.state&endedThere != 0:
			p.arrived.set() // for others who wait
		}
		(*End)(p).unlock(a)
		if !expired {
			return b, nil, nil
		}
		b.Release()
	}
}

// skipLocked adds up how many Blocks are missing before b.
func (p *Pipe) skipLocked(b *Block, expired bool) {
	r := p.rare
	if r == nil && b.Skipped == 0 && !expired {
		return
	}
	r = p.more()
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
func (p *Pipe) nothingLocked() (wait <-chan struct{}, err error) {
	switch {
	case p.pausedLocked():
	case p.abort != nil:
		return nil, p.abort
	case p.state&over != 0:
		return nil, io.EOF
	case p.state&stoppedHere != 0:
		p.arrived.set() // others who wait learn it too
		return nil, codec.ErrStopped
	case p.state&endedThere != 0:
		p.arrived.set() // likewise
		return nil, io.EOF
	}
	return p.arrived.wait(), nil
}

// discardLocked empties the inbox.
func (p *Pipe) discardLocked(a *after) {
	a.messages, a.bytes = p.waitingLocked()
	p.inbox.Reset()
	p.taken += uint64(p.inboxed) + uint64(a.messages)*p.terms.Overhead
	p.inboxed = 0
}
