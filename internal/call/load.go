package call

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

// Load is the present state of the calls of a session, and of what they hold.
type Load struct {
	Pipes                 int // running calls of both sides
	Waiting, MostWaiting  int // calls of the peer that wait for a worker
	Running, MostRunning  int
	Made, Served          uint64 // calls of this side, and of the peer
	Parked                int    // answers that wait to be sent
	Holding               int    // bytes of running calls and answers
	Inbound, Outbound     DirectionLoad
	Classes               Classes
	WaitPlace, WaitOpens  Wait
	WaitWindow, WaitLimit Wait
}

// DirectionLoad is the load of one direction of the limits.
type DirectionLoad struct {
	Held, Most limits.Amount
	State      limits.State
}

// Classes has the load of each class of the inbound budget.
type Classes struct{ Calls, Nested, Served, Made, Large, Elastic ClassLoad }

// ClassLoad is one class of the inbound budget: its minimum, the bytes promised to the peer, the
// part of them in use, and the number of requests that wait for it.
type ClassLoad struct{ Room, Promised, Held, Waiting int }

func classLoad(l flow.Load) ClassLoad { return ClassLoad{l.Minimum, l.Granted, l.Granted, l.Waiting} }

// Load returns the present state.
func (x *Calls) Load() (l Load) {
	l.Pipes, l.Made = x.Table.len(), x.Table.opened()
	l.Inbound = DirectionLoad{x.inbound.Held(), x.inbound.Peak(), x.inbound.State()}
	l.Outbound = DirectionLoad{x.out.limit.Held(), x.out.limit.Peak(), x.out.limit.State()}
	l.WaitPlace, l.WaitWindow, l.WaitOpens, l.WaitLimit = x.out.waits.load(waitPlace), x.out.waits.load(waitWindow), x.out.waits.load(waitOpens), x.out.waits.load(waitOutbound)

	w := x.serving.dispatcher.Load()
	l.Waiting, l.Running, l.MostWaiting, l.MostRunning = w.Waiting, w.Running, w.MostWaiting, w.MostRunning
	l.Served, l.Parked = w.Served, w.Parked
	l.Holding = w.Held + w.Unparked*flow.LeastOverhead
	c := &l.Classes
	c.Calls = ClassLoad{w.Opens.Room(), w.Opens.Promised(), w.Opens.Held(), w.Waiting}
	c.Nested = ClassLoad{w.Most, w.Most, w.Nested, 0}
	if x.out.terms.Budget != nil {
		r := x.out.terms.Budget.Load()
		c.Served, c.Made, c.Large, c.Elastic = classLoad(r[flow.Served]), classLoad(r[flow.Made]), classLoad(r[flow.Large]), classLoad(r[flow.Elastic])
		c.Elastic.Promised += r[flow.Initial].Granted
		c.Nested.Room += r[flow.Nested].Minimum
		c.Nested.Promised += r[flow.Nested].Granted
		c.Nested.Held += r[flow.Nested].Granted
	}
	return l
}

// Held returns the bytes that wait in both directions, and those of running calls.
func (x *Calls) Held() int {
	return x.inbound.Held().Bytes + x.out.limit.Held().Bytes + x.serving.dispatcher.Load().Held
}

// WaitsFor reports what senders wait for: for the peer to take Blocks, or for room for calls and
// streams.
func (x *Calls) WaitsFor() (windows, room bool) {
	return x.out.terms.Waiting.Load() > 0, x.out.waits.load(waitOpens).Now+x.out.waits.load(waitWindow).Now > 0
}

// Outstanding returns the calls of a function: the bound, or 0 without one, and those that are
// outstanding and that wait.
func (x *Calls) Outstanding(function uint16) (most, made, waiting int) {
	places := x.out.places[function]
	if places == nil {
		return 0, 0, 0
	}
	return int(places.Room()), int(places.Used()), places.Len()
}

// waitKind is the resource of a wait.
type waitKind uint8

const (
	waitPlace    waitKind = iota // the outstanding calls of a function
	waitWindow                   // budget here for the window of a stream that this side opens
	waitOpens                    // budget of the peer for calls
	waitOutbound                 // the outbound soft limit
	waitKinds
)

// Wait counts the waits for one resource.
type Wait struct {
	Now   int           // present waits
	Bytes int           // bytes that these hold: their messages are encoded
	Times uint64        // waits since the beginning
	For   time.Duration // total time of waits that have ended
}

// waitCounts counts waits. Sessions without a wait allocate no counters.
type waitCounts struct {
	counts atomic.Pointer[[waitKinds]waitCounter]
}

type waitCounter struct {
	now     atomic.Int32
	bytes   atomic.Int64
	times   atomic.Uint64
	elapsed atomic.Int64 // in nanoseconds
}

// begin counts a caller that waits with bytes of encoded data, until the returned function is
// called. clock measures the wait.
func (w *waitCounts) begin(clock *Clock, kind waitKind, bytes int) (end func()) {
	c := w.counts.Load()
	if c == nil {
		w.counts.CompareAndSwap(nil, new([waitKinds]waitCounter))
		c = w.counts.Load()
	}
	began := clock.Now()
	c[kind].now.Add(1)
	c[kind].bytes.Add(int64(bytes))
	c[kind].times.Add(1)
	return func() {
		c[kind].now.Add(-1)
		c[kind].bytes.Add(-int64(bytes))
		c[kind].elapsed.Add(int64(clock.Now() - began))
	}
}

// load returns the counts of one kind.
func (w *waitCounts) load(kind waitKind) Wait {
	c := w.counts.Load()
	if c == nil {
		return Wait{}
	}
	return Wait{Now: int(c[kind].now.Load()), Bytes: int(c[kind].bytes.Load()), Times: c[kind].times.Load(), For: time.Duration(c[kind].elapsed.Load())}
}

// WaitedFor is OfContext with the resource of the wait.
func WaitedFor(ctx context.Context, format string, args ...any) *codec.Abort {
	a := aborts.OfContext(ctx)
	a.Message = fmt.Sprintf("%s, waiting for "+format, append([]any{a.Message}, args...)...)
	return a
}
