package piping

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// Wrap puts code around e, which stays until the end of the call. The first is the outermost: of
// what is sent it is asked first, of what is received and of the outcome last. Wrap is called once
// at most, before the application has the pipe. The call may be over already: the outcome is shown
// to the code then, too, but who has asked for it before has not seen what that makes of it.
func (e *End) Wrap(all ...Around) {
	if len(all) == 0 {
		return
	}
	r := newAround(all)
	e.mu.Lock()
	e.in.needs().around = r
	e.in.wrapped = true
	e.in.lasting = e.in.lasting && !r.unseen // an End may take longer than any context
	show := r.unseen && e.state.over()
	e.mu.Unlock()
	if show {
		e.show()
	}
}

// around returns what stands around e, or nil. It needs no lock, because that is fixed when the
// application has the pipe.
func (e *End) around() *around {
	if !e.in.wrapped {
		return nil
	}
	return e.in.special.around
}

// guarded calls f, which asks what stands around e. If that does not return, lost is told why, even
// where the goroutine ends.
func (e *End) guarded(f func(), lost func(*codec.Abort)) {
	returned := false
	defer func() {
		if !returned {
			lost(e.port.Misbehaved(recover()))
		}
	}()
	f()
	returned = true
}

// sendAround is Send for b, of which those around e have yet to be asked what is sent in its place.
func (e *End) sendAround(ctx context.Context, r *around, b Outgoing) error {
	if err := e.closed(); err != nil { // nobody is asked for nothing
		return e.refusal(ctx, r, err)
	}
	mem, err := e.replace(r, &b)
	if err != nil {
		return err
	}
	if err := e.send(ctx, b); err != nil {
		return e.refusal(ctx, r, err)
	}
	if mem != nil {
		mem.Release()
	}
	return nil
}

// postAround is what sendAround is to Send.
func (e *End) postAround(r *around, b Outgoing) (limits.State, error) {
	if err := e.closed(); err != nil {
		return limits.Ready, err
	}
	mem, err := e.replace(r, &b)
	if err != nil {
		return limits.Ready, err
	}
	s, err := e.post(b)
	if err == nil && mem != nil {
		mem.Release()
	}
	return s, err
}

// replace has b replaced by what is sent in its place. The memory that it returns is released when
// that has been sent, unless it is nil.
func (e *End) replace(r *around, b *Outgoing) (mem *buffer.Buffer, err error) {
	before := b.Payload
	e.guarded(func() { b.Payload, err = r.send(before) }, func(a *codec.Abort) {
		err = a
		e.Abort(a)
	})
	switch n := len(b.Payload); {
	case err != nil:
		return nil, err
	case n == len(before) && (n == 0 || &b.Payload[0] == &before[0]):
		return nil, nil
	case n > e.MaxBlock():
		return nil, codec.ErrTooLarge.Withf("a Block of %d bytes has become one of %d before it was sent, and the peer takes %d", len(before), n, e.MaxBlock())
	}
	mem, b.Memory = b.Memory, nil // it is not what is sent, or not full
	return mem, nil
}

// received returns b as the application sees it.
func (e *End) received(r *around, b Block) (_ Block, err error) {
	e.guarded(func() { b.Payload, err = r.recv(b.Payload) }, func(a *codec.Abort) {
		err = a
		e.Abort(a)
	})
	if err == nil {
		return b, nil
	}
	e.mu.Lock()
	e.in.special.skipped += b.Skipped // they are missing before the next one, too
	e.mu.Unlock()
	return Block{}, err
}

// refusal returns err, which is why nothing was sent, as the application sees it: once the call is
// over, why, when all have seen that.
func (e *End) refusal(ctx context.Context, r *around, err error) error {
	e.mu.Lock()
	over := e.state.over()
	e.mu.Unlock()
	if !over || r.seen == nil {
		return err
	}
	select {
	case <-r.seen:
	case <-ctx.Done():
		return codec.AbortOf(ctx.Err())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusalLocked()
}

// unseenLocked returns what some of those around e have yet to see the outcome of, or nil.
func (e *End) unseenLocked() *around {
	if e.in.special == nil || e.in.special.around == nil || !e.in.special.around.unseen {
		return nil
	}
	return e.in.special.around
}

// show shows the outcome, which is fixed, to those who want to see it. It does not wait: a
// goroutine, which ends with the last of them, does the rest.
func (e *End) show() {
	e.mu.Lock()
	o := &outcome{result: e.result, abort: e.abort, yet: e.in.special.around.all}
	e.mu.Unlock()
	go e.showAll(o)
}

// showAll shows o to those who have yet to see it, and then to the application.
func (e *End) showAll(o *outcome) {
	returned := false
	defer func() {
		if !returned { // one of them ends the goroutine: another one goes on with the rest
			go e.showAll(o)
		}
	}()
	for end := o.next(); end != nil; end = o.next() {
		e.guarded(func() { o.see(end) }, o.lose)
	}
	returned = true
	e.mu.Lock()
	e.result, e.abort = o.result, o.abort
	r := e.in.special.around
	r.unseen = false
	close(r.seen)
	e.mu.Unlock()
}
