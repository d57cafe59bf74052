package asterisque

import (
	"container/list"
	"context"
	"sync"
)

// durableCalls are the running durable calls of a connection, in order. On every session they are
// sent in that order: each waits until the one before it has been sent. Calls that a draining peer
// has accepted stay on their session.
type durableCalls struct {
	most int // fixed

	mu    sync.Mutex
	calls list.List // guarded by mu, like its elements; of *durableCall
	on    *Session  // the present session; nil before the first
}

// durableCall is one durable call.
type durableCall struct {
	sent *Session // the session on which the call was sent last
	// closed when the call before this one has been sent, or the session changes; nil without a
	// waiter
	turn chan struct{}
}

func (d *durableCalls) init(most int) {
	if most <= 0 {
		most = 1024
	}
	d.most = most
}

// moveTo makes all calls be sent again on another session, in order.
func (d *durableCalls) moveTo(s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on = s
	for e := d.calls.Front(); e != nil; e = e.Next() {
		e.Value.(*durableCall).wake()
	}
}

// stays reports whether the call waits for its answer on a session that takes no new calls: then it
// does not delay other calls.
func (c *durableCall) stays() bool {
	return c.sent != nil && c.sent.calls.PeerDrains() && c.sent.calls.Context().Err() == nil
}

// before returns the call that has to be sent before e, or nil.
func before(e *list.Element) *list.Element {
	for e = e.Prev(); e != nil && e.Value.(*durableCall).stays(); {
		e = e.Prev()
	}
	return e
}

// wakeAfter wakes the calls that may have waited for e alone.
func wakeAfter(e *list.Element) {
	for e = e.Next(); e != nil; e = e.Next() {
		c := e.Value.(*durableCall)
		if c.wake(); !c.stays() {
			return
		}
	}
}

func (c *durableCall) wake() {
	if c.turn != nil {
		close(c.turn)
		c.turn = nil
	}
}

// add adds a call at the end. It returns nil if there are too many.
func (d *durableCalls) add() *list.Element {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls.Len() >= d.most {
		return nil
	}
	return d.calls.PushBack(new(durableCall))
}

// remove removes a call that has ended.
func (d *durableCalls) remove(e *list.Element) {
	d.mu.Lock()
	defer d.mu.Unlock()
	wakeAfter(e)
	d.calls.Remove(e)
}

// wait waits until the call before e has been sent on s. It returns false if the session changes
// meanwhile. The error is that of ctx.
func (d *durableCalls) wait(ctx context.Context, e *list.Element, s *Session) (ok bool, err error) {
	for {
		d.mu.Lock()
		first, present := before(e), d.on == s
		if !present || first == nil || first.Value.(*durableCall).sent == s {
			d.mu.Unlock()
			return present, nil
		}
		turn := make(chan struct{})
		e.Value.(*durableCall).turn = turn
		d.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// sent records that e has been sent on s, or on no session if s is nil.
func (d *durableCalls) sent(e *list.Element, s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.Value.(*durableCall).sent = s
	wakeAfter(e)
}
