package call

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// The waits of a call from this side before it is sent: for a place of its function, for credit of
// the peer, for the window of its stream, and at the outbound soft limit.

// waitForPlace waits for a place among the outstanding calls of a function, if these are bounded,
// and returns the bound. Nested calls do not use it, since a call with a place may wait for them.
// cost is that of the Open.
func (o *outgoing) waitForPlace(ctx context.Context, function uint16, p priority.Priority, cost int64) (*flow.Credit, *codec.Abort) {
	places := o.places[function]
	if places == nil {
		return nil, nil
	}
	t := places.Acquire(p, 1)
	if t == nil {
		return places, nil
	}
	a := o.await(ctx, t, waitPlace, int(cost), func() string {
		return fmt.Sprintf("one of the %d calls of function %d that may be outstanding (WithMaxOutstanding), and %d wait", places.Room(), function, places.Len())
	})
	if a != nil {
		places.Leave(t)
		return nil, a
	}
	return places, nil
}

// waitForOpens waits until the peer's credit for Opens allows an Open of this cost.
func (o *outgoing) waitForOpens(ctx context.Context, cost int64, p priority.Priority) *codec.Abort {
	if room := o.opens.Room(); room > 0 && cost > min(room, math.MaxInt) {
		return aborts.NeverSent(codec.ErrTooLarge.Withf("the call costs %d bytes, and the peer has room for %d", cost, room))
	}
	t := o.opens.Acquire(p, cost)
	if t == nil {
		return nil
	}
	a := o.await(ctx, t, waitOpens, t.Bytes, func() string {
		return fmt.Sprintf("room for calls at the peer: its workers have to take some first, and %d bytes of %d are used", o.opens.Used(), o.opens.Room())
	})
	if a != nil {
		o.opens.Leave(t)
	}
	return a
}

// waitForStream waits for the window of a stream that this side opens, while the caller holds bytes
// of parameters.
func (o *outgoing) waitForStream(ctx context.Context, t *flow.Ticket, bytes int) *codec.Abort {
	budget := o.terms.Budget
	a := o.await(ctx, t, waitWindow, bytes, func() string {
		l := budget.Load()
		return fmt.Sprintf("room for a window at the caller: %d bytes are promised to streams, and %d wait", l.Windows().Granted, l[flow.Made].Waiting)
	})
	if a == nil {
		return nil
	}
	waited, granted := budget.Withdraw(&t.Waiter)
	flow.Grant(granted)
	if !waited { // its turn came at the same moment
		flow.Grant(budget.Release(t.Source(), t.Bytes))
	}
	return a
}

// waitToSend counts a message that is about to be sent. At the soft limit it waits.
func (o *outgoing) waitToSend(ctx context.Context, p priority.Priority, held uint32) *codec.Abort {
	if o.limit.TryAcquire(int(held)) {
		return nil
	}
	if o.limit.Never(int(held)) {
		return o.beyondHard(int(held))
	}
	t := flow.NewTicket(p, int(held))
	if o.limit.Acquire(&t.Waiter) {
		return nil
	}
	a := o.await(ctx, t, waitOutbound, t.Bytes, func() string {
		return fmt.Sprintf("the outbound soft limit of %v: %v have not been given to the wire, because the peer does not read as fast", o.limit.Limits().Soft, o.limit.Held())
	})
	if a != nil {
		o.limit.Leave(&t.Waiter)
	}
	return a
}

// beyondHard returns the error of a message that exceeds the hard limit by itself.
func (o *outgoing) beyondHard(held int) *codec.Abort {
	a := codec.ErrTooLarge.Withf("the message holds %d bytes, and the outbound hard limit is %d: see Limits.Outbound", held, o.limit.Limits().Hard.Bytes)
	a.Ran = codec.NeverSent
	return a
}

// await waits for the turn of t while the caller holds bytes, and counts the wait as one of kind.
// The error of a context names the resource. After an error the caller withdraws t. Ended streams
// with untaken Blocks, which may hold all of the room for windows, are dropped meanwhile.
func (o *outgoing) await(ctx context.Context, t *flow.Ticket, kind waitKind, bytes int, what func() string) *codec.Abort {
	again := new(time.Ticker)
	if kind == waitWindow {
		_, next := o.terms.DropLeft()
		again = time.NewTicker(next)
		defer again.Stop()
	}
	defer o.waits.begin(&o.common.Clock, kind, bytes)()
	for {
		select {
		case <-t.Turn():
			switch {
			case !t.Refused():
				return nil
			case kind == waitOutbound:
				return o.beyondHard(bytes)
			}
			return o.errDrains()
		case <-again.C:
			_, next := o.terms.DropLeft()
			again.Reset(next)
		case <-ctx.Done():
			return aborts.NeverSent(WaitedFor(ctx, "%s", what()))
		case <-o.session.Context().Done():
			return o.ended()
		}
	}
}

// dropHold releases a window that no Open has granted to the peer.
func (o *outgoing) dropHold(h *flow.Window) {
	if o.terms.Budget != nil {
		flow.Grant(o.terms.Budget.End(h))
	}
}
