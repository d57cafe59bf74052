package asterisque

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
)

// outgoing is what calls from this side of a session have to heed before they are sent: whether
// they are sent at all, and the room that each needs, here and at the peer. See reservation for
// what a call holds of it.
type outgoing struct {
	ctx     context.Context // ends with the session; its cause is why; these are fixed
	common  *common
	terms   piping.Terms           // what the two sides have promised each other
	windows map[uint16]*callWindow // of the functions of the peer that have one

	outbound outbound // these lock themselves
	opens    openCredit
	nesting  nesting
	waits    waits

	draining     atomic.Bool // Shutdown was called here: the peer's new calls are refused
	peerDraining atomic.Bool // the peer refuses new calls
}

// common is what the calls of all sessions of a node have in common.
type common struct {
	uptime
	// through the interceptors of the node, for calls of this side and for those of the peer; nil
	// without; fixed
	outward, inward Next
	// handle runs the handler of a call with interceptors around it; fixed
	handle func(c handledCall, w *workspace) (result []byte, err error)
	// not global, because the channels of calls belong to the bubble of a synctest as the node does
	spares outbox.Pool // of *madeCall
}

// setWindows makes the windows of functions, which have so many calls each.
func (o *outgoing) setWindows(calls map[uint16]int) {
	if len(calls) == 0 {
		return
	}
	o.windows = make(map[uint16]*callWindow, len(calls))
	for function, n := range calls {
		o.windows[function] = &callWindow{size: n}
	}
}

// lifetime returns when a new call is no longer worth running, or why it cannot be made.
func (o *outgoing) lifetime(ctx context.Context, ttl time.Duration) (expires time.Time, a *Abort) {
	switch {
	case o.ctx.Err() != nil:
		return expires, o.ended()
	case ctx.Err() != nil:
		return expires, neverSent(contextError(ctx))
	case o.draining.Load(), o.peerDraining.Load():
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

// firstWindow returns what the Blocks of a stream that this side opens may cost at first.
func (o *outgoing) firstWindow() uint64 {
	if o.terms.PeerEarly == 0 {
		return piping.Unlimited
	}
	return o.terms.PeerEarly
}

// ended returns the error of a call that was not sent because the session has ended.
func (o *outgoing) ended() *Abort { return neverSent(context.Cause(o.ctx)) }

// errDrains returns why a call is not sent on a session that is being shut down.
func (o *outgoing) errDrains() *Abort {
	who := "the peer"
	if o.draining.Load() {
		who = "this side"
	}
	return neverSent(codec.ErrUnavailable.Withf("%s shuts the session down", who))
}

// drain is called when no more calls are made: the peer takes none, or the session retires. It
// reports whether that is new.
func (o *outgoing) drain() (first bool) {
	if o.peerDraining.Swap(true) {
		return false
	}
	o.opens.drain()
	return true
}
