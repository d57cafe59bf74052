package piping

import (
	"container/list"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// LeftIdle is the time without a take after which the untaken Blocks of an ended pipe are dropped
// if other messages need their room.
const LeftIdle = 10 * time.Second

var (
	errLeftIdle = codec.ErrStalled.Withf("Blocks were left after the end of the call, none was taken for %v, and other messages needed the room: receive all Blocks, or end the context of Open, or call Abort", LeftIdle)
	errLeftOver = codec.ErrCanceled.Withf("the context of Open has ended after the call, and the Blocks that were left are dropped")
)

// leftPipes are the pipes of a session that have ended without an error, and of which the
// application has not taken all Blocks. They are in the order of their last takes.
type leftPipes struct {
	mu   sync.Mutex
	list list.List // of *leftPipe
}

// leftPipe is the state of a pipe in the list.
type leftPipe struct {
	end     *End
	at      *list.Element
	since   time.Time   // of the last take; guarded by the lock of the list
	forgets func() bool // stops waiting for the end of the context of Open; may be nil
}

// add appends p to the list.
func (l *leftPipes) add(p *leftPipe) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.since = time.Now()
	p.at = l.list.PushBack(p)
}

// took records a take.
func (l *leftPipes) took(p *leftPipe) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.since = time.Now()
	l.list.MoveToBack(p.at)
}

// remove removes p.
func (l *leftPipes) remove(p *leftPipe) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list.Remove(p.at)
}

// idle returns the pipes without a take for LeftIdle, and the time until another one may be.
func (l *leftPipes) idle() (all []*End, next time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := l.list.Front(); at != nil; at = at.Next() {
		p := at.Value.(*leftPipe)
		if next = LeftIdle - time.Since(p.since); next > 0 {
			return all, next
		}
		all = append(all, p.end)
	}
	return all, LeftIdle
}

// DropLeft drops the untaken Blocks of ended pipes without a take for LeftIdle, and reports whether
// there were some. next is the time after which there may be more.
func (t *Terms) DropLeft() (dropped bool, next time.Duration) {
	l := t.left.Load()
	if l == nil {
		return false, LeftIdle
	}
	all, next := l.idle()
	for _, e := range all {
		e.dropLeft(errLeftIdle)
	}
	return len(all) > 0, next
}

// leftLocked returns the state of e as a pipe with untaken Blocks, or nil.
func (e *End) leftLocked() *leftPipe {
	if e.in.extras == nil {
		return nil
	}
	return e.in.extras.left
}

// keepLeftLocked keeps the untaken Blocks of e, whose call has ended without an error.
func (e *End) keepLeftLocked(a *deferred) {
	l := e.terms.left.Load()
	if l == nil {
		l = new(leftPipes)
		if !e.terms.left.CompareAndSwap(nil, l) {
			l = e.terms.left.Load()
		}
	}
	p := &leftPipe{end: e}
	e.in.needs().left = p
	l.add(p)
	a.watchLeft = true
}

// forgetLeftLocked removes e, of which no Block is left, from the list.
func (e *End) forgetLeftLocked(a *deferred) {
	p := e.leftLocked()
	if p == nil {
		return
	}
	e.terms.left.Load().remove(p)
	e.in.extras.left = nil
	a.forgets = p.forgets
	e.in.release(e.state, e.terms, a)
}

// dropLeft drops the untaken Blocks of e, if its call has ended. Recv returns reason from then on.
func (e *End) dropLeft(reason *codec.Abort) {
	var a deferred
	e.mu.Lock()
	if e.leftLocked() != nil {
		e.in.discard(e.terms, &a)
		e.in.extras.lost = reason
		e.forgetLeftLocked(&a)
	}
	e.unlock(a)
}

// watchLeft drops the untaken Blocks of e when the context of Open ends, once the application has
// the result.
func (e *End) watchLeft() {
	forgets := e.port.Outlive(e.contextOver)
	e.mu.Lock()
	p := e.leftLocked()
	if p != nil {
		p.forgets = forgets
	}
	e.mu.Unlock()
	if p == nil && forgets != nil {
		forgets()
	}
}

// contextOver is called when the context of Open has ended after the call.
func (e *End) contextOver() {
	e.mu.Lock()
	e.state |= contextEnded
	drop := e.state&resultTaken != 0
	e.mu.Unlock()
	if drop {
		e.dropLeft(errLeftOver)
	}
}
