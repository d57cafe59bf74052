package piping

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// Wrap adds interceptors to e until the end of the call. The first one is the outermost: it is the
// first to see sent Blocks, and the last to see received Blocks and the outcome. Wrap is called at
// most once, before the application has the pipe. If the call is over already, the interceptors
// still see the outcome, but an earlier caller of Result has not seen their replacement.
func (e *End) Wrap(all ...StreamInterceptor) {
	if len(all) == 0 {
		return
	}
	r := newAround(all)
	e.mu.Lock()
	e.in.needs().interceptors = r
	e.in.wrapped = true
	e.in.lasting = e.in.lasting && !r.unseen // an End function may take longer than any context
	show := r.unseen && e.state.over()
	e.mu.Unlock()
	if show {
		e.show()
	}
}

// around returns the interceptors of e, or nil. It needs no lock, because they are fixed when the
// application has the pipe.
func (e *End) around() *interceptedEnd {
	if !e.in.wrapped {
		return nil
	}
	return e.in.extras.interceptors
}

// guarded calls f, which runs an interceptor. If the interceptor does not return, guarded calls
// lost with the error, even if the goroutine ends.
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

// sendAround is Send for b, before the interceptors of e have seen it.
func (e *End) sendAround(ctx context.Context, r *interceptedEnd, b Outgoing) error {
	if err := e.closed(); err != nil { // no interceptor sees a Block that cannot be sent
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

// postAround is sendAround for Post.
func (e *End) postAround(r *interceptedEnd, b Outgoing) (limits.State, error) {
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

// replace replaces b by the Block to send in its place. The returned memory, unless nil, is
// released when that Block has been sent.
func (e *End) replace(r *interceptedEnd, b *Outgoing) (mem *buffer.Buffer, err error) {
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
	mem, b.Memory = b.Memory, nil // does not contain the new payload, or is not filled by it
	return mem, nil
}

// received returns b as the application sees it.
func (e *End) received(r *interceptedEnd, b Block) (_ Block, err error) {
	e.guarded(func() { b.Payload, err = r.recv(b.Payload) }, func(a *codec.Abort) {
		err = a
		e.Abort(a)
	})
	if err == nil {
		return b, nil
	}
	e.mu.Lock()
	e.in.extras.skipped += b.Skipped // also counted as dropped before the next Block
	e.mu.Unlock()
	return Block{}, err
}

// refusal returns err, the reason why a Block was not sent, as the application sees it. After the
// end of the call that is the outcome, once all interceptors have seen it.
func (e *End) refusal(ctx context.Context, r *interceptedEnd, err error) error {
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

// unseenLocked returns the interceptors of e if some of them have not seen the outcome yet, and nil
// otherwise.
func (e *End) unseenLocked() *interceptedEnd {
	s := e.in.extras
	if s == nil || s.interceptors == nil || !s.interceptors.unseen {
		return nil
	}
	return s.interceptors
}

// show passes the outcome, which is fixed, to the interceptors. It does not block: a goroutine,
// which ends after the last interceptor, does the work.
func (e *End) show() {
	e.mu.Lock()
	s := e.in.extras
	o := &callOutcome{result: e.result, abort: e.abort, pending: s.interceptors.all}
	e.mu.Unlock()
	go e.showAll(o)
}

// showAll passes o to the remaining interceptors, and then to the application.
func (e *End) showAll(o *callOutcome) {
	returned := false
	defer func() {
		if !returned { // an interceptor ended the goroutine: another one continues
			go e.showAll(o)
		}
	}()
	for end := o.next(); end != nil; end = o.next() {
		e.guarded(func() { o.see(end) }, o.lose)
	}
	returned = true
	e.mu.Lock()
	e.result, e.abort = o.result, o.abort
	r := e.in.extras.interceptors
	r.unseen = false
	close(r.seen)
	e.mu.Unlock()
}
