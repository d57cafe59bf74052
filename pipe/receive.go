package pipe

import (
	"context"
	"io"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// Recv waits for the next Block. After the peer's last one, or when the call ended well, it returns io.EOF; an abort discards Blocks that wait. The other
// errors are a *[codec.Abort]: ErrCanceled and ErrExpired from ctx, which ends only the wait, or why the call was aborted.
func (p *Pipe) Recv(ctx context.Context) (Block, error) {
	for {
		b, wait, err := p.take()
		if wait == nil {
			return b, err
		}
		if p.lasting && any(ctx) == any(p.port) {
			<-wait
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return Block{}, codec.AbortOf(ctx.Err())
		}
	}
}

// Skipped returns how many Blocks were dropped on the way since the one that Recv returned last. After io.EOF it is final: it tells of Blocks dropped at the end.
func (p *Pipe) Skipped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inbox.Len() > 0 {
		return p.skipped
	}
	return p.skipped + p.endSkipped
}

// Stop says that this side wants no more Blocks: those that wait are discarded, Recv returns ErrStopped from now on, and so does the peer's Send. The call goes
// on, and so does the other direction. It does not wait.
func (p *Pipe) Stop() {
	p.mu.Lock()
	s, ok := p.state.next(sendStop)
	if !ok {
		p.mu.Unlock()
		return // nothing more comes anyway
	}
	p.state = s
	messages, bytes := p.discardLocked()
	p.arrived.set()
	p.mu.Unlock()
	p.port.Stop()
	p.port.Taken(messages, bytes)
}

// Pause holds Recv back, and with it the credit that the peer gets, until Resume.
func (p *Pipe) Pause() { p.setPaused(true) }

// Resume ends a Pause.
func (p *Pipe) Resume() { p.setPaused(false) }

func (p *Pipe) setPaused(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = paused
	if p.state&over == 0 {
		p.arrived.set()
	}
}

// take returns the next Block, or an error if none will come, or else a channel to wait on. Blocks whose time is up are passed over.
func (p *Pipe) take() (b Block, wait <-chan struct{}, err error) {
	for {
		window := uint64(p.port.Window())
		p.mu.Lock()
		if p.inbox.Len() == 0 || p.paused {
			defer p.mu.Unlock()
			wait, err := p.nothingLocked()
			return Block{}, wait, err
		}
		b = p.inbox.Pop()
		expired := !b.expires.IsZero() && !time.Now().Before(b.expires)
		p.skipped += b.Skipped
		b.Skipped = p.skipped
		if expired {
			p.skipped++
		} else {
			p.skipped = 0
		}
		n := len(b.Payload)
		p.takenLocked(n, window)
		if !expired {
			return b, nil, nil
		}
		b.Release()
	}
}

// takenLocked sees to what follows from the taking of a Block with n bytes of payload, and unlocks.
func (p *Pipe) takenLocked(n int, window uint64) {
	p.inboxed -= n
	more := p.inbox.Len() > 0
	grant := p.window.take(uint64(n)+limits.Overhead, !more, window)
	if p.state&over != 0 {
		p.mu.Unlock()
		return // finish has seen to the rest
	}
	if more || p.state&endedThere != 0 {
		p.arrived.set() // for others who wait
	}
	p.mu.Unlock()

	p.port.Taken(1, n)
	if grant > 0 {
		p.port.Grant(grant)
	}
}

// nothingLocked returns why there is nothing to take: a channel to wait on, or an error if nothing will come.
func (p *Pipe) nothingLocked() (wait <-chan struct{}, err error) {
	switch {
	case p.paused && p.state&over == 0:
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

// discardLocked empties the inbox and returns what was in it.
func (p *Pipe) discardLocked() (messages, bytes int) {
	messages, bytes = len(p.inbox.Reset()), p.inboxed
	p.inboxed = 0
	return messages, bytes
}
