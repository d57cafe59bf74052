package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/limits"
)

// The end of a session for its calls.

// announceEnd announces to the peer which of its calls will still run: those that have arrived.
// Calls with missing parts are rejected. Rejections are sent after the Drain, so that the peer
// knows the reason.
func (x *sessionCalls) announceEnd(when carrier.When) {
	if !x.drainsHere.Load() {
		// repeated by concurrent callers, as rejections of the caller have to follow the Drain
		d, begun := x.table.drainHere()
		x.carrier.Control(d, when)
		for id, p := range begun {
			x.turnAwayUnfinished(id, p, errShutDown)
		}
		x.drainsHere.Store(true)
	}
}

// refuseWaiting rejects the calls of the peer that have not begun, as far as the outbound soft
// limit allows. Rejections that the Wire does not take at once are lost with the session.
func (x *sessionCalls) refuseWaiting() {
	_, endpoints := x.table.infos()
	for _, e := range endpoints {
		if x.outbound.State() >= limits.Soft || x.carrier.Context().Err() != nil {
			return
		}
		if c, ok := e.(*inboundCall); ok && x.serving.dispatcher.Waits(c) && x.serving.dispatcher.Withdraw(c).Waits() {
			c.Refuse(errShutDown)
		}
	}
}

// end aborts all calls with the cause of the end of the session.
func (x *sessionCalls) end(cause *Abort) {
	open, refused := x.table.end()
	for _, e := range open {
		e.fail(cause)
	}
	for _, e := range refused {
		e.fail(drained(cause))
	}
}

// drained returns the error of a call that the peer's Drain has rejected, if the session ends with
// a before the peer's answer arrives.
func drained(a *Abort) *Abort {
	return &Abort{Code: codec.Unavailable, Message: "the peer shut the session down before the call arrived", Remote: true, Ran: codec.Refused, Cause: a}
}

// drains reports whether this side drains the session: it rejects new calls of the peer.
func (x *sessionCalls) drains() bool { return x.table.drainsHere() }

// peerDrains reports whether no more calls are made: the peer accepts none, or the session is
// retired.
func (x *sessionCalls) peerDrains() bool { return x.drainsThere.Load() }

// draining returns a channel that is closed when either side begins to drain the session.
func (x *sessionCalls) draining() <-chan struct{} { return x.table.draining() }

// drained returns a channel that is closed when no call is left.
func (x *sessionCalls) drained() <-chan struct{} { return x.table.drained() }

// answered returns a channel that is closed when no call of this side is left.
func (x *sessionCalls) answered() <-chan struct{} { return x.table.answered() }

// concluded reports whether a call of this side has ended.
func (x *sessionCalls) concluded() bool { return x.table.concluded() }

// running lists the calls, in the order of their ids.
func (x *sessionCalls) running() []callInfo { return x.table.running() }

// len returns the number of calls.
func (x *sessionCalls) len() int { return x.table.len() }

// context returns the context of the session, which ends with it: the cause is the reason.
func (x *sessionCalls) context() context.Context { return x.carrier.Context() }

// endWaits ends the waits of senders at the outbound soft limit, at the end of the session.
func (x *sessionCalls) endWaits() { x.outbound.end() }
