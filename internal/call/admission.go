package call

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/quota"
)

// admission holds the conditions for calls from this side of a session: whether they may be
// sent at all, and the budgets that each needs, here and at the peer. reservation is the part of
// one call.
type admission struct {
	session *carrier.Carrier // of the session; these are fixed
	common  *Common
	terms   piping.Terms           // grants of both sides
	windows map[uint16]*callWindow // of the functions of the peer that have one

	Outbound sendLimit // these lock themselves
	opens    openCredit
	nesting  nestedCalls
	waits    waitCounts

	drainsHere  atomic.Bool // Shutdown was called here: new calls of the peer are rejected
	drainsThere atomic.Bool // the peer rejects new calls
}

// Common is the common state of the calls of all sessions of a node.
type Common struct {
	Clock
	Intercepted bool // interceptors of the node are around the calls of peers; fixed, as handle
	// Handle runs the handler of a call through its interceptors
	Handle func(c HandlerCall, w *dispatch.Workspace) (result []byte, err error)
	// not global, because the channels of calls belong to the bubble of a synctest as the node does
	spares  outbox.Pool         // of *Outbound
	Durable idempotency.Answers // answers to durable calls of peers
	Owners  quota.Owners        // of the sessions
}

// setWindows makes the windows of functions, with their numbers of calls.
func (o *admission) setWindows(calls map[uint16]int) {
	if len(calls) == 0 {
		return
	}
	o.windows = make(map[uint16]*callWindow, len(calls))
	for function, n := range calls {
		o.windows[function] = &callWindow{size: n}
	}
}

// lifetime returns the time at which a new call expires, or the reason why it cannot be made.
func (o *admission) lifetime(ctx context.Context, ttl time.Duration) (expires time.Time, a *codec.Abort) {
	switch {
	case o.session.Context().Err() != nil:
		return expires, o.ended()
	case ctx.Err() != nil:
		return expires, aborts.NeverSent(aborts.OfContext(ctx))
	case o.drainsHere.Load(), o.drainsThere.Load():
		return expires, o.errDrains()
	}
	expires, _ = ctx.Deadline()
	if ttl > 0 {
		if end := time.Now().Add(ttl); expires.IsZero() || end.Before(expires) {
			expires = end
		}
	}
	return expires, nil
}

// firstWindow returns the initial cost limit for the Blocks of a stream that this side opens.
func (o *admission) firstWindow() uint64 {
	if o.terms.PeerEarly == 0 {
		return piping.Unlimited
	}
	return o.terms.PeerEarly
}

// ended returns the error of a call that was not sent because the session has ended.
func (o *admission) ended() *codec.Abort {
	return aborts.NeverSent(context.Cause(o.session.Context()))
}

// errDrains returns the error of a call on a session that is being shut down.
func (o *admission) errDrains() *codec.Abort {
	who := "the peer"
	if o.drainsHere.Load() {
		who = "this side"
	}
	return aborts.NeverSent(codec.ErrUnavailable.Withf("%s shuts the session down", who))
}

// Retire is called when no more calls are made: the peer accepts none, or the session is retired.
// It reports whether that is new.
func (o *admission) Retire() (first bool) {
	if o.drainsThere.Swap(true) {
		return false
	}
	o.opens.drain()
	return true
}
