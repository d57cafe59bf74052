package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
)

// job is a call of the peer for the dispatcher: it implements dispatch.Job.
type job struct{ c *Inbound }

// Run implements dispatch.Job.
func (j job) Run(k *dispatch.Workspace) { handlerRun(j).run(k) }

// Refuse implements dispatch.Job.
func (j job) Refuse(a *codec.Abort) { response(j).refuse(a) }

// Task implements dispatch.Job.
func (j job) Task() *dispatch.Task { return &j.c.work }

// Limit implements dispatch.Job: it returns the concurrency limit of its function, or else that
// of its owner, if the call is durable. A call nested within the same function waits for no
// concurrency limit, and a nested call waits for neither owner nor worker.
func (j job) Limit() *dispatch.ConcurrencyLimit {
	g := j.c.Handler.Limit
	switch {
	case g != nil && j.withinSame(nil):
		return nil
	case g != nil || j.c.work.Nested || j.c.extras.first() == nil:
		return g
	}
	return j.c.extras.first().Limit()
}

// OnlyWaits implements dispatch.Job.
func (j job) OnlyWaits() bool { return j.c.Handler.OnlyWaits }

// Turn implements dispatch.Job.
func (j job) Turn() (*dispatch.KeyedOrder, *dispatch.Turn) {
	if j.c.extras == nil || j.c.extras.turn == nil {
		return nil, nil
	}
	return &j.c.Handler.Key.Keys, j.c.extras.turn
}

// withinSame reports whether the call is nested within a call of the same function; if key is not
// nil, of the same function and key.
func (j job) withinSame(key *uint64) bool {
	var by *Inbound
	for o := j.c.parent; o != nil && o.by != nil; o = by.parent {
		by = o.by.(*Inbound)
		if by.Handler != j.c.Handler {
			continue
		}
		if _, t := (job{by}).Turn(); key == nil || t.SameKey(*key) {
			return true
		}
	}
	return false
}

// Weight implements dispatch.Job.
func (j job) Weight() int {
	return j.c.heldParams() + j.c.extras.heldMetadata() + j.c.work.DecodedSize.Bytes()
}

// Cost implements dispatch.Job.
func (j job) Cost() uint64 {
	t := &j.c.calls().out.terms
	cost := uint64(j.c.work.Size) + t.Overhead
	if j.c.work.Windowed {
		cost += uint64(t.Early)
	}
	if j.c.extras != nil {
		cost += uint64(j.c.extras.strings) - uint64(j.c.extras.returned)
	}
	return cost
}

// Dispatcher implements dispatch.Job.
func (j job) Dispatcher() *dispatch.Dispatcher { return j.c.calls().Dispatcher() }

// Begin implements dispatch.Job: the Open no longer waits, and the Blocks have a window of their
// own.
func (j job) Begin(h flow.Window) {
	j.countOut()
	if j.c.transport.pipe != nil {
		(*piping.End)(j.c.transport.pipe).BeginHandler(h)
	}
}

// countOut subtracts the waiting Open.
func (j job) countOut() { j.c.calls().inbound.Remove(1, j.c.held()) }

// Unlist implements dispatch.Job.
func (j job) Unlist() {
	j.countOut()
	j.c.freeParams()
}

// Abandon implements dispatch.Job.
func (j job) Abandon() {
	if m := j.c.extras.first(); m != nil {
		j.c.calls().durable().HandOn(m)
	}
}

// dispatchPort is the session as the Output of its dispatcher, and of the Blocks of its
// calls.
type dispatchPort struct{ x *Calls }

// Grant implements Output.
func (o dispatchPort) Grant(total uint64) {
	o.x.Carrier.Control(message.Credit{Opens: true, Limit: total}, carrier.Now)
}

// WaitOutbound implements Output: it holds a worker back while the session is at its
// outbound soft limit, so that results do not pile up. It returns at the inbound soft limit: there
// the waiting calls have to be taken before reading can resume, and two peers that wait for each
// other's reading would deadlock.
func (o dispatchPort) WaitOutbound() {
	for room := o.x.out.limit.Room(); room != nil; room = o.x.out.limit.Room() {
		full := o.x.inbound.Full()
		if full == nil {
			return
		}
		select {
		case <-room:
		case <-full:
		case <-o.x.Carrier.Context().Done():
			return
		}
	}
}

// MustWaitOutbound implements Output.
func (o dispatchPort) MustWaitOutbound() bool {
	return o.x.out.limit.State() >= limits.Soft && o.x.inbound.State() < limits.Soft && o.x.Carrier.Context().Err() == nil
}

// Taken implements piping.Ledger.
func (o dispatchPort) Taken(messages, bytes int) { o.x.inbound.Remove(messages, bytes) }

// Reserve implements piping.Ledger.
func (o dispatchPort) Reserve(bytes int) bool { return o.x.serving.dispatcher.Reserve(bytes) }
