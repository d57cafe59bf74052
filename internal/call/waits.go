package call

import (
	"context"
	"math"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// The waits of a call from this side before it is sent: for the window of its function, for budget
// of the peer, for budget for a window of its own, and at the outbound soft limit.

// waitForWindow waits for the window of a function, if there is one, and returns it. Nested calls
// do not use it, since a call in the window may wait for them. cost is that of the Open.
func (o *outgoing) waitForWindow(ctx context.Context, function uint16, p priority.Priority, cost int64) (*callWindow, *codec.Abort) {
	w := o.windows[function]
	if w == nil {
		return nil, nil
	}
	if a := w.wait(ctx, o.session.Context(), p, int(cost)); a != nil {
		return nil, a
	}
	return w, nil
}

// waitForOpens waits until the peer's budget for Opens allows an Open of this cost.
func (o *outgoing) waitForOpens(ctx context.Context, cost int64, p priority.Priority) *codec.Abort {
	if o.opens.room > 0 && cost > min(o.opens.room, math.MaxInt) {
		return aborts.NeverSent(codec.ErrTooLarge.Withf("the call costs %d bytes, and the peer has room for %d", cost, o.opens.room))
	}
	w := o.opens.reserve(p, cost)
	if w == nil {
		return nil
	}
	defer o.waits.begin(&o.common.Clock, waitOpens, int(cost))()
	select {
	case <-w.Turn():
		if w.Refused() {
			return o.errDrains()
		}
		return nil
	case <-ctx.Done():
		o.opens.Leave(w)
		used, room := o.opens.used()
		return aborts.NeverSent(WaitedFor(ctx, "room for calls at the peer: its workers have to take some first, and %d bytes of %d are used", used, room))
	case <-o.session.Context().Done():
		return o.ended()
	}
}

// waitForHold waits for the turn of c, while the caller holds bytes of parameters.
func (o *outgoing) waitForHold(ctx context.Context, c *flow.Waiter, turn chan struct{}, bytes int) (a *codec.Abort) {
	defer o.waits.begin(&o.common.Clock, waitWindow, bytes)()
	room := o.terms.Room
	_, next := o.terms.DropLeft() // ended streams may hold all of the room
	again := time.NewTicker(next)
	defer again.Stop()
	for a == nil {
		select {
		case <-turn:
			return nil
		case <-again.C:
			_, next = o.terms.DropLeft()
			again.Reset(next)
		case <-ctx.Done():
			l := room.Load()
			a = aborts.NeverSent(WaitedFor(ctx, "room for a window at the caller: %d bytes are promised to streams, and %d wait", l.Windows, l.Opening))
		case <-o.session.Context().Done():
			a = o.ended()
		}
	}
	waited, granted := room.Withdraw(c)
	flow.Grant(granted)
	if !waited { // its turn came at the same moment
		<-turn
		var h flow.Hold
		room.Opened(c, &h)
		o.dropHold(&h)
	}
	return a
}

// waitToSend counts a message that is about to be sent. At the soft limit it waits.
func (o *outgoing) waitToSend(ctx context.Context, p priority.Priority, held uint32) *codec.Abort {
	if !o.limit.queued.Load() && o.limit.Reserve(int(held)) {
		return nil
	}
	if a := o.limit.never(int(held)); a != nil {
		return a
	}
	turn := make(chan struct{})
	d := o.limit.reserve(p, int(held), func() { close(turn) })
	if d == nil {
		return nil
	}
	defer o.waits.begin(&o.common.Clock, waitOutbound, int(held))()
	var a *codec.Abort
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		a = aborts.NeverSent(WaitedFor(ctx, "the outbound soft limit of %v: %v have not been given to the wire, because the peer does not read as fast", o.limit.Limits().Soft, o.limit.Held()))
	case <-o.session.Context().Done():
		a = o.ended()
	}
	if !o.limit.abandon(d) {
		o.limit.Remove(1, int(held))
	}
	return a
}

// dropHold releases a window that no Open has granted to the peer.
func (o *outgoing) dropHold(h *flow.Hold) {
	if o.terms.Room != nil {
		flow.Grant(o.terms.Room.End(h))
	}
}
