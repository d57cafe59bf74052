package piping

import "github.com/asterisque-go/asterisque/codec"

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
