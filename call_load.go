package asterisque

import (
	"github.com/asterisque-go/asterisque/limits"
)

// callLoad is the present state of the calls of a session, and of what they hold.
type callLoad struct {
	Pipes                            int // running calls of both sides
	Waiting, MostWaiting             int // calls of the peer that wait for a worker
	Running, MostRunning             int
	Made, Served                     uint64 // calls of this side, and of the peer
	Parked                           int    // answers that wait to be sent
	Holding                          int    // bytes of running calls and answers
	Inbound, Outbound                directionLoad
	Opens, Nested, Blocks, Large     shareLoad
	WaitWindow, WaitOpens, WaitLimit waitCount
	Asking                           int // pipes with an application that waits for a large Block
}

// directionLoad is the load of one direction of the limits.
type directionLoad struct {
	Held, Most limits.Amount
	State      limits.State
}

// shareLoad is one part of the inbound budget: the whole, what is promised to the peer, and what of
// that has arrived.
type shareLoad struct{ Room, Promised, Held int }

// load returns the present state.
func (x *sessionCalls) load() (l callLoad) {
	l.Pipes, l.Made = x.table.len(), x.table.opened()
	l.Inbound = directionLoad{x.inbound.Held(), x.inbound.Peak(), x.inbound.State()}
	l.Outbound = directionLoad{x.outbound.Held(), x.outbound.Peak(), x.outbound.State()}
	l.WaitWindow, l.WaitOpens, l.WaitLimit = x.waits.load(waitWindow), x.waits.load(waitOpens), x.waits.load(waitOutbound)

	w := x.serving.dispatcher.Load()
	l.Waiting, l.Running, l.MostWaiting, l.MostRunning = w.Waiting, w.Running, w.MostWaiting, w.MostRunning
	l.Served, l.Parked = w.Served, w.Parked
	l.Holding = w.Held + w.Unparked*(heldPlace+heldUnary) + w.Streams*(heldStream-heldUnary)
	l.Opens = shareLoad{w.Opens.Room(), w.Opens.Promised(), w.Opens.Held()}
	l.Nested = shareLoad{w.Most, w.Most, w.Nested}
	if x.terms.Room != nil {
		p, r := x.terms.Room.Plan(), x.terms.Room.Load()
		l.Blocks = shareLoad{(p.Workers+p.Callers)*p.Window + p.Spare, r.Windows, r.Windows}
		l.Large = shareLoad{p.Large, r.Large, r.Large}
		l.Asking = r.Asking
	}
	return l
}

// held returns the bytes that wait in both directions, and those of running calls.
func (x *sessionCalls) held() int {
	return x.inbound.Held().Bytes + x.outbound.Held().Bytes + x.serving.dispatcher.Held()
}

// waitsFor reports what senders wait for: for the peer to take Blocks, or for room for calls and
// streams.
func (x *sessionCalls) waitsFor() (windows, room bool) {
	return x.terms.Waiting.Load() > 0, x.waits.load(waitOpens).Now+x.waits.load(waitWindow).Now > 0
}

// outstanding returns the use of the window of a function.
func (x *sessionCalls) outstanding(function uint16) windowUse { return x.windows[function].used() }
