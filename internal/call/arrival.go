package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/values"
)

// arrival is the arrival of a call of the peer, on the goroutine of the reader.
type arrival struct{ c *Inbound }

// arrive starts c, which is in the table already, so that the end of the session may end it
// meanwhile. An inline call runs here, any other one in its turn.
func (r arrival) arrive() {
	if err := r.weigh(); err != nil {
		r.turnBack(codec.AbortOf(err))
		return
	}
	if r.c.extras != nil && r.c.extras.key != nil {
		if refused := r.c.calls().Dispatcher().Arrive(job(r).Cost(), r.c.work.Nested); refused != nil {
			response(r).refuse(refused)
			return
		}
		r.c.work.Counted = true
		if !durableCall(r).begin() {
			return
		}
	}
	if r.c.Handler.Inline {
		r.runInline()
	} else if err := r.enqueue(arrival.turnBack); err != nil {
		r.turnBack(codec.AbortOf(err))
	}
}

// turnBack rejects c, which has just arrived. Its caller's budget is released when the rejection
// has left.
func (r arrival) turnBack(a *codec.Abort) {
	r.c.freeParams()
	if !r.c.work.Counted {
		if beyond := r.c.calls().Dispatcher().Arrive(job(r).Cost(), r.c.work.Nested); beyond != nil {
			response(r).refuse(beyond)
			return
		}
	}
	r.c.work.ByReader = true
	response(r).refuse(a)
}

// enqueue queues c for its turn. On error c cannot run; refuse is as for examine.
func (r arrival) enqueue(refuse refusing) error {
	if r.c.Handler.Key != nil {
		if err := r.examine("key", refuse, r.nameKey); err != nil {
			return err
		}
	}
	r.c.calls().arrived(r.c.held())
	r.c.calls().Dispatcher().Put(job(r))
	return nil
}

// Application code that runs on the goroutine of the reader: inline handlers, and functions that
// are called before a call can wait. Close, called there, does not wait for the reader. If such
// code ends the goroutine, another goroutine ends the session: see package carrier.

// runInline runs c on the goroutine of the reader.
func (r arrival) runInline() {
	began := false
	r.c.calls().Carrier.EnterCode()
	defer func() {
		r.c.calls().Carrier.LeaveCode()
		if began && !r.c.work.ByReader && !r.c.work.Nested {
			r.c.calls().Dispatcher().Return(job(r).Cost(), false)
		}
	}()
	if r.c.calls().Carrier.Context().Err() != nil {
		r.c.calls().Carrier.Settle() // the end of the session includes the end of r.c
	}
	ok, refused := r.c.calls().Dispatcher().BeginInline(job(r))
	switch {
	case refused == dispatch.ErrDeferred:
		r.c.calls().arrived(r.c.held())
		r.c.calls().Dispatcher().Put(job(r)) // a worker runs it; keys do not apply to it
		return
	case refused != nil:
		r.c.freeParams()
		response(r).refuse(refused)
		return
	case !ok:
		if r.c.work.Counted {
			r.c.calls().Dispatcher().Return(job(r).Cost(), r.c.work.Nested)
		}
		job(r).Abandon()
		return
	}
	began, r.c.work.ByReader = true, r.c.transport.pipe == nil
	if r.c.calls().serving.inline == nil {
		r.c.calls().serving.inline = new(dispatch.Workspace)
	}
	handlerRun(r).run(r.c.calls().serving.inline)
}

// refusing rejects a call that has just arrived.
type refusing = func(arrival, *codec.Abort)

// errShutDown is the error of a call that arrives while the session ends.
var errShutDown = codec.ErrUnavailable.Withf("the session is being shut down")

// examine calls f, application code that is needed before c can wait. If f panics, examine returns
// an error. If f ends the goroutine, examine does not return, but calls refuse.
func (r arrival) examine(what string, refuse refusing, f func() error) (err error) {
	r.c.calls().Carrier.EnterCode()
	returned := false
	defer func() {
		r.c.calls().Carrier.LeaveCode()
		if returned {
			return
		}
		v := recover()
		guard.Misbehaved(r.c.calls().Coder.Log, what, v, "function", r.c.Function(), "name", r.c.Handler.Name)
		a := codec.ErrPanicked.Withf("the %s of function %d %q %s",
			what, r.c.Function(), r.c.Handler.Name, guard.HowEnded(v))
		if err = a; v == nil {
			refuse(r, a)
		}
	}()
	// after the end of the session no caller waits any more
	if err = errShutDown; r.c.calls().Carrier.Context().Err() == nil {
		err = f()
	}
	returned = true
	return err
}

// weigh estimates the decoded size of c's parameters as the handler's type, once for all uses of
// that type.
func (r arrival) weigh() error {
	h := r.c.Handler
	switch {
	case h.Params == nil:
		return nil
	case len(r.c.params) <= h.Free:
		if r.c.intercepted() { // interceptors may read them later: kept beside their value
			r.c.work.DecodedSize = dispatch.Round16(len(r.c.params))
		}
		return nil
	}
	return r.examine("codec", arrival.turnBack, func() error {
		n, err := r.c.calls().Coder.Weigh(r.c.params, h.Params)
		if err != nil {
			return values.Error(codec.BadParams, r.c.Function(), h.Name, "parameters", err)
		}
		r.c.work.DecodedSize = dispatch.Round16(n)
		return nil
	})
}

// runInPlace runs c in place of another call, which did not run.
func (r arrival) runInPlace() {
	if err := r.enqueue(arrival.turnBackNext); err != nil {
		r.turnBackNext(codec.AbortOf(err))
	}
}

// turnBackNext rejects c, which was about to run in place of another call.
func (r arrival) turnBackNext(a *codec.Abort) {
	r.c.calls().Dispatcher().Return(job(r).Cost(), r.c.work.Nested)
	response(r).refuse(a)
}

// nameKey computes the key of c for a function with keys. An error rejects the call.
func (r arrival) nameKey() error {
	k := r.c.Handler.Key
	held, err := r.weighForKey()
	if err != nil {
		return err
	}
	r.c.calls().Dispatcher().Hold(held)
	defer r.c.calls().Dispatcher().Hold(-held)
	key, value, err := k.KeyOf(r.c.calls().Coder.Values, r.c.params)
	if err != nil {
		return values.Error(codec.BadParams, r.c.Function(), r.c.Handler.Name, "parameters", err)
	}
	if job(r).withinSame(&key) {
		return nil
	}
	t := dispatch.NewTurn(key, job(r))
	if r.keepsForKey() {
		t.Value = value
		r.c.freeParams()
	}
	r.c.makeRare().turn = t
	return nil
}

// keepsForKey reports whether the value decoded for the key is kept for the handler of c, so that
// it is not decoded again. It has to be of the same type, and hold no more than the parameters that
// it replaces, which must have no other use.
func (r arrival) keepsForKey() bool {
	k := r.c.Handler.Key
	return k.Params != nil && k.Params == r.c.Handler.Params && r.c.calls().Coder.Lender == nil && !r.c.intercepted() && (r.c.extras == nil || r.c.extras.key == nil) &&
		(len(r.c.params) <= k.Free || r.c.work.DecodedSize.Bytes() <= max(r.c.heldParams(), len(unaryCall{}.small)))
}

// weighForKey returns the decoded size of c's parameters for their key. For the handler's type it
// is known already.
func (r arrival) weighForKey() (n int, err error) {
	k := r.c.Handler.Key
	switch {
	case k.Params == nil || len(r.c.params) <= k.Free:
		return 0, nil
	case k.Params == r.c.Handler.Params:
		return r.c.work.DecodedSize.Bytes(), nil
	}
	if n, err = r.c.calls().Coder.Weigh(r.c.params, k.Params); err != nil {
		err = values.Error(codec.BadParams, r.c.Function(), r.c.Handler.Name, "parameters", err)
	}
	return n, err
}
