package piping

import "github.com/asterisque-go/asterisque/codec"

// Around is code that stands around one end of a pipe, between the application and the pipe. It
// sees, and may replace, what the application sends and receives, and the outcome of the call. Each
// of the functions may be nil. They are called without a lock, and concurrently where the
// application sends or receives concurrently. They must not ask the pipe that they stand around for
// its outcome.
//
// One that panics or ends its goroutine is logged, and aborts its call with ErrPanicked.
type Around struct {
	// Send gets the payload of each Block before it is sent, on the goroutine of the sender, and
	// returns what is sent in its place. That is what windows and limits count. The payload is the
	// application's: Send neither changes nor keeps it. It may return the payload, a part of it or
	// other memory, which nobody may change until the Block has been accepted. An error is what the
	// sender gets: nothing of the Block is sent, and the pipe goes on. A Block that Send has seen
	// may still fail to be sent, or be dropped.
	Send func(payload []byte) ([]byte, error)

	// Recv gets the payload of each Block that the application takes, on the goroutine of the
	// receiver, and returns what that sees in its place. Windows and limits count what has come.
	// Recv may change the payload. Its memory is used again when the application releases the
	// Block: what Recv keeps longer it has to copy. An error is what the receiver gets in place of
	// the Block, and the pipe goes on with the next one.
	Recv func(payload []byte) ([]byte, error)

	// End gets the outcome of the call as this end sees it, and returns what the application sees.
	// It is called exactly once, whether or not the application asks for the outcome, on a
	// goroutine of its own that begins when the call is over. The result is that of the peer, which
	// End may change and keep. It is nil at the end that has closed the call. Beside an error, the
	// result is none. The error becomes an Abort as [codec.AbortOf] makes it of any error.
	//
	// Until all have returned, the application sees a call that is not over yet: what it waits for
	// goes on waiting, with its context. Only Post and CloseSend, which do not wait, may tell it
	// what has become of the call before. Nothing bounds how many calls wait for their End at a
	// time, so that it should not take long.
	End func(result []byte, err error) ([]byte, error)
}

// around is all that stands around an End.
type around struct {
	all    []Around      // from the outermost on; fixed, as seen
	seen   chan struct{} // closed when all have seen the outcome; nil if none wants to
	unseen bool          // guarded by the lock of the End: some have yet to see the outcome
}

// newAround returns what stands around an End.
func newAround(all []Around) *around {
	r := &around{all: all}
	for i := range all {
		r.unseen = r.unseen || all[i].End != nil
	}
	if r.unseen {
		r.seen = make(chan struct{})
	}
	return r
}

// send returns what is to be sent in place of payload.
func (r *around) send(payload []byte) (_ []byte, err error) {
	for i := range r.all {
		if f := r.all[i].Send; f != nil {
			if payload, err = f(payload); err != nil {
				return nil, err
			}
		}
	}
	return payload, nil
}

// recv returns what the application sees in place of payload.
func (r *around) recv(payload []byte) (_ []byte, err error) {
	for i := len(r.all) - 1; i >= 0; i-- {
		if f := r.all[i].Recv; f != nil {
			if payload, err = f(payload); err != nil {
				return nil, err
			}
		}
	}
	return payload, nil
}

// outcome is what becomes of a call, on its way to the application.
type outcome struct {
	result []byte
	abort  *codec.Abort
	yet    []Around // that have yet to see it; the last one is the next
}

// next returns the End of the next that wants to see the outcome, or nil.
func (o *outcome) next() (end func([]byte, error) ([]byte, error)) {
	for end == nil && len(o.yet) > 0 {
		end = o.yet[len(o.yet)-1].End
		o.yet = o.yet[:len(o.yet)-1]
	}
	return end
}

// see shows the outcome to end, and takes what that makes of it.
func (o *outcome) see(end func([]byte, error) ([]byte, error)) {
	var err error
	if o.abort != nil {
		err = o.abort
	}
	result, err := end(o.result, err)
	a := codec.AbortOf(err) // which calls methods of err, and may panic as well
	if a != nil {
		result = nil
	}
	o.result, o.abort = result, a
}

// lose is called when an End has not returned.
func (o *outcome) lose(a *codec.Abort) { o.result, o.abort = nil, a }
