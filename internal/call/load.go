package call

import (
	"github.com/asterisque-go/asterisque/limits"
)

// Load is the present state of the calls of a session, and of what they hold.
type Load struct {
	Pipes                            int // running calls of both sides
	Waiting, MostWaiting             int // calls of the peer that wait for a worker
	Running, MostRunning             int
	Made, Served                     uint64 // calls of this side, and of the peer
	Parked                           int    // answers that wait to be sent
	Holding                          int    // bytes of running calls and answers
	Inbound, Outbound                DirectionLoad
	Opens, Nested, Blocks, Large     ShareLoad
	WaitWindow, WaitOpens, WaitLimit Wait
	Asking                           int // pipes with an application that waits for a large Block
}

// DirectionLoad is the load of one direction of the limits.
type DirectionLoad struct {
	Held, Most limits.Amount
	State      limits.State
}

// ShareLoad is one part of the inbound budget: the whole, what is promised to the peer, and what of
// that has arrived.
type ShareLoad struct{ Room, Promised, Held int }

// Load returns the present state.
func (x *Calls) Load() (l Load) {
	l.Pipes, l.Made = x.Table.len(), x.Table.opened()
	l.Inbound = DirectionLoad{x.Inbound.Held(), x.Inbound.Peak(), x.Inbound.State()}
	l.Outbound = DirectionLoad{x.Outbound.Held(), x.Outbound.Peak(), x.Outbound.State()}
	l.WaitWindow, l.WaitOpens, l.WaitLimit = x.waits.load(waitWindow), x.waits.load(waitOpens), x.waits.load(waitOutbound)

	w := x.serving.dispatcher.Load()
	l.Waiting, l.Running, l.MostWaiting, l.MostRunning = w.Waiting, w.Running, w.MostWaiting, w.MostRunning
	l.Served, l.Parked = w.Served, w.Parked
	l.Holding = w.Held + w.Unparked*(heldPlace+heldUnary) + w.Streams*(heldStream-heldUnary)
	l.Opens = ShareLoad{w.Opens.Room(), w.Opens.Promised(), w.Opens.Held()}
	l.Nested = ShareLoad{w.Most, w.Most, w.Nested}
	if x.terms.Room != nil {
		p, r := x.terms.Room.Plan(), x.terms.Room.Load()
		l.Blocks = ShareLoad{(p.Workers+p.Callers)*p.Window + p.Spare, r.Windows, r.Windows}
		l.Large = ShareLoad{p.Large, r.Large, r.Large}
		l.Asking = r.Asking
	}
	return l
}

// Held returns the bytes that wait in both directions, and those of running calls.
func (x *Calls) Held() int {
	return x.Inbound.Held().Bytes + x.Outbound.Held().Bytes + x.serving.dispatcher.Held()
}

// WaitsFor reports what senders wait for: for the peer to take Blocks, or for room for calls and
// streams.
func (x *Calls) WaitsFor() (windows, room bool) {
	return x.terms.Waiting.Load() > 0, x.waits.load(waitOpens).Now+x.waits.load(waitWindow).Now > 0
}

// Outstanding returns the use of the window of a function.
func (x *Calls) Outstanding(function uint16) WindowUse { return x.windows[function].used() }
