package call

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/limits"
)

// The end of a session for its calls.

// AnnounceEnd announces to the peer which of its calls will still run: those that have arrived.
// Calls with missing parts are rejected. Rejections are sent after the Drain, so that the peer
// knows the reason.
func (x *Calls) AnnounceEnd(when carrier.When) {
	if !x.out.drainsHere.Load() {
		// repeated by concurrent callers, as rejections of the caller have to follow the Drain
		d, begun := x.Table.DrainHere()
		x.Carrier.Control(d, when)
		for id, p := range begun {
			x.turnAwayUnfinished(id, p, errShutDown)
		}
		x.out.drainsHere.Store(true)
	}
}

// RefuseWaiting rejects the calls of the peer that have not begun, as far as the outbound soft
// limit allows. Rejections that the Wire does not take at once are lost with the session.
func (x *Calls) RefuseWaiting() {
	_, endpoints := x.Table.infos()
	for _, e := range endpoints {
		if x.out.limit.State() >= limits.Soft || x.Carrier.Context().Err() != nil {
			return
		}
		if c, ok := e.(*Inbound); ok && x.serving.dispatcher.Waits(job{c}) && x.serving.dispatcher.Withdraw(job{c}).Waits() {
			response{c}.refuse(errShutDown)
		}
	}
}

// End aborts all calls with the cause of the end of the session.
func (x *Calls) End(cause *codec.Abort) {
	open, refused := x.Table.end()
	for _, e := range open {
		e.fail(cause)
	}
	for _, e := range refused {
		e.fail(drained(cause))
	}
}

// drained returns the error of a call that the peer's Drain has rejected, if the session ends with
// a before the peer's answer arrives.
func drained(a *codec.Abort) *codec.Abort {
	return &codec.Abort{Code: codec.Unavailable, Message: "the peer shut the session down before the call arrived", Remote: true, Ran: codec.Refused, Cause: a}
}

// Retire is called when no more calls are made: the peer accepts none, or the application retires
// the session. It reports whether that is new.
func (x *Calls) Retire() (first bool) { return x.out.retire() }

// Drains reports whether this side drains the session: it rejects new calls of the peer.
func (x *Calls) Drains() bool { return x.Table.drainsHere() }

// PeerDrains reports whether no more calls are made: the peer accepts none, or the session is
// retired.
func (x *Calls) PeerDrains() bool { return x.out.drainsThere.Load() }

// Draining returns a channel that is closed when either side begins to drain the session.
func (x *Calls) Draining() <-chan struct{} { return x.Table.draining() }

// Drained returns a channel that is closed when no call is left.
func (x *Calls) Drained() <-chan struct{} { return x.Table.drained() }

// Answered returns a channel that is closed when no call of this side is left.
func (x *Calls) Answered() <-chan struct{} { return x.Table.answered() }

// Concluded reports whether a call of this side has ended.
func (x *Calls) Concluded() bool { return x.Table.concluded() }

// Running lists the calls, in the order of their ids.
func (x *Calls) Running() []Info { return x.Table.running() }

// Len returns the number of calls.
func (x *Calls) Len() int { return x.Table.len() }

// Context returns the context of the session, which ends with it: the cause is the reason.
func (x *Calls) Context() context.Context { return x.Carrier.Context() }

// EndWaits ends the waits of senders at the outbound soft limit, at the end of the session.
func (x *Calls) EndWaits() { x.out.limit.End() }
