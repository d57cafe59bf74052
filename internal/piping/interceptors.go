package piping

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// StreamInterceptor is a stream interceptor at one end of a pipe, between the application and the
// pipe. It sees, and may replace, the Blocks that the application sends and receives, and the
// outcome of the call. Each of its functions may be nil. They are called without a lock, and
// concurrently if the application sends or receives concurrently. They must not ask the intercepted
// pipe for its outcome.
//
// A function that panics or ends its goroutine is logged, and its call is aborted with ErrPanicked.
type StreamInterceptor struct {
	// Send is called with the payload of each Block before it is sent, on the goroutine of the
	// sender, and returns the payload to send in its place. Windows and limits count the returned
	// payload.
	//
	// The application owns the payload: Send neither changes nor keeps it. Send may return the
	// payload, a part of it, or other memory, which must not be changed until the Block has been
	// accepted. The sender gets an error of Send: no part of the Block is sent, and the pipe
	// continues. A Block that Send has returned may still fail to be sent, or be dropped.
	Send func(payload []byte) ([]byte, error)

	// Recv is called with the payload of each Block that the application takes, on the goroutine of
	// the receiver, and returns the payload that the receiver gets. Windows and limits count the
	// received payload. Recv may change the payload. Its memory is reused when the application
	// releases the Block, so Recv has to copy any bytes that it keeps longer. The receiver gets an
	// error of Recv in place of the Block, and the pipe continues with the next one.
	Recv func(payload []byte) ([]byte, error)

	// End is called with the outcome of the call at this end, and returns the outcome that the
	// application sees. It is called exactly once, whether or not the application asks for the
	// outcome, on a goroutine of its own that starts when the call is over. The result is that of
	// the peer, which End may change and keep. It is nil at the end that has closed the call. A
	// result returned with an error is ignored. The error becomes an Abort by [codec.AbortOf].
	//
	// Until all End functions have returned, the call is not over for the application: its waiting
	// methods keep waiting, until their contexts end. Only Post and CloseSend, which do not wait,
	// may return the outcome of the call earlier. The number of calls that wait for their End
	// functions is not bounded, so End should not take long.
	End func(result []byte, err error) ([]byte, error)
}

// interceptedEnd is the interceptors of an End.
type interceptedEnd struct {
	all []StreamInterceptor // from the outermost on; fixed, as seen
	// closed when all have seen the outcome; nil if none has an End function
	seen   chan struct{}
	unseen bool // guarded by the lock of the End: some have not seen the outcome yet
}

// newAround returns the interceptors of an End.
func newAround(all []StreamInterceptor) *interceptedEnd {
	r := &interceptedEnd{all: all}
	for i := range all {
		r.unseen = r.unseen || all[i].End != nil
	}
	if r.unseen {
		r.seen = make(chan struct{})
	}
	return r
}

// send returns the payload to send in place of payload.
func (r *interceptedEnd) send(payload []byte) (_ []byte, err error) {
	for i := range r.all {
		if f := r.all[i].Send; f != nil {
			if payload, err = f(payload); err != nil {
				return nil, err
			}
		}
	}
	return payload, nil
}

// recv returns the payload that the application gets in place of payload.
func (r *interceptedEnd) recv(payload []byte) (_ []byte, err error) {
	for i := len(r.all) - 1; i >= 0; i-- {
		if f := r.all[i].Recv; f != nil {
			if payload, err = f(payload); err != nil {
				return nil, err
			}
		}
	}
	return payload, nil
}

// callOutcome is the outcome of a call on its way to the application.
type callOutcome struct {
	result  []byte
	abort   *codec.Abort
	pending []StreamInterceptor // interceptors that have not seen it; the last one is the next
}

// next returns the next End function to call, or nil.
func (o *callOutcome) next() (end func([]byte, error) ([]byte, error)) {
	for end == nil && len(o.pending) > 0 {
		end = o.pending[len(o.pending)-1].End
		o.pending = o.pending[:len(o.pending)-1]
	}
	return end
}

// see passes the outcome to end, and replaces it by the returned one.
func (o *callOutcome) see(end func([]byte, error) ([]byte, error)) {
	var err error
	if o.abort != nil {
		err = o.abort
	}
	result, err := end(o.result, err)
	a := codec.AbortOf(err) // calls methods of err, which may panic as well
	if a != nil {
		result = nil
	}
	o.result, o.abort = result, a
}

// lose is called when an End function has not returned.
func (o *callOutcome) lose(a *codec.Abort) { o.result, o.abort = nil, a }

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
