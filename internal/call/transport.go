package call

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// callTransport connects one call to the Calls of its session: it sends the messages of the
// call, and receives those for its pipe. It is the [piping.Port] of pipes, and part of calls
// without one.
type callTransport struct {
	x    *Calls
	flow outbox.Flow // guarded by the outbox
	pipe *pipe.Pipe  // nil if the call has no Blocks here; fixed
}

// id returns the id of the pipe, which is valid once the pipe is in the session's table.
func (p *callTransport) id() uint64 { return p.flow.ID() }

// Send implements piping.Port.
func (p *callTransport) Send(ctx context.Context, b piping.Outgoing) error {
	if a := p.waitForRoom(ctx); a != nil {
		return a
	}
	held := uint32(flow.Held(len(b.Payload)))
	if a := p.x.out.waitToSend(ctx, p.pipe.Priority(), held); a != nil {
		return a
	}
	m := p.message(&b, held, p.x.out.limit.State())
	return p.put(&m, carrier.WithNext)
}

// waitForRoom waits while the queue holds more of the pipe than its share.
func (p *callTransport) waitForRoom(ctx context.Context) *codec.Abort {
	for {
		room := p.x.Carrier.Room(&p.flow)
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return aborts.NeverSent(WaitedFor(ctx, "earlier Blocks of the pipe, which have not been given to the wire"))
		case <-p.x.Carrier.Context().Done():
			return aborts.NeverSent(p.x.Cause())
		}
	}
}

// Post implements piping.Port.
func (p *callTransport) Post(b piping.Outgoing) (limits.State, error) {
	held := uint32(flow.Held(len(b.Payload)))
	state := p.x.count(held)
	m := p.message(&b, held, state)
	// at once, so that the next Post knows whether the transport takes more
	return state, p.put(&m, carrier.Now)
}

// Thin implements piping.Port.
func (p *callTransport) Thin(b *piping.Outgoing) (dropped bool) {
	m := p.message(b, 0, limits.Congested)
	dropped = p.x.Carrier.Judge(&p.flow, &m)
	if b.Loss = m.Loss; dropped && b.Memory != nil {
		b.Memory.Release()
	}
	return dropped
}

// Expire implements piping.Port.
func (p *callTransport) Expire(b *piping.Outgoing) {
	m := p.message(b, 0, limits.Ready)
	p.x.Carrier.Expire(&p.flow, &m)
	if b.Memory != nil {
		b.Memory.Release()
	}
}

// message returns b, for which held bytes are counted, as a message in a state of the session.
func (p *callTransport) message(b *piping.Outgoing, held uint32, state limits.State) outbox.Message {
	return outbox.Message{
		Type: message.BlockType, Payload: b.Payload, Memory: b.Memory, Held: held, Loss: b.Loss,
		Expires: b.Expires, Pressed: state >= limits.Congested, Marker: b.Marker, Sender: (*piping.End)(p.pipe),
		Whole: uint32(b.Whole), Offset: uint32(b.Offset),
	}
}

// CloseSend implements piping.Port.
func (p *callTransport) CloseSend() error {
	p.x.count(heldAlone)
	return p.put(&outbox.Message{Type: message.BlockType, End: true, Held: heldAlone}, carrier.Now)
}

// givenUp returns the reason for dropping waiting messages of a call that this side ends with a.
func givenUp(a *codec.Abort) outbox.Reason {
	if a.Code == codec.Expired {
		return outbox.Expired
	}
	return outbox.Ended
}

// Flow implements outbox.Pooled.
func (p *callTransport) Flow() *outbox.Flow { return &p.flow }

// closedBy drops the waiting messages of the pipe because the peer has closed it. The pipe has to
// know the Close before, so that a sender gets its error. unsent reports that an Open was dropped
// of which some parts have left.
func (p *callTransport) closedBy(abort *codec.Abort) (unsent bool) {
	why := outbox.Ended
	switch {
	case p.flow.Released():
		return false
	case errors.Is(abort, codec.ErrNoFunction):
		why = outbox.NoFunction
	case errors.Is(abort, codec.ErrUnavailable):
		why = outbox.Draining
	}
	return p.x.Carrier.Finish(&p.flow, why)
}

// closedUnsent returns the error of a call that the peer has closed before all of its Open had
// left: it has not run, whatever the peer reports. err is not nil if the peer must not report that.
func (p *callTransport) closedUnsent(abort *codec.Abort) (a *codec.Abort, err error) {
	if abort == nil {
		v := aborts.Violation("a result for pipe %d, whose Open is unfinished", p.id())
		return aborts.NeverSent(v), v
	}
	if abort.Ran == codec.MaybeRan {
		abort = aborts.NeverSent(abort)
	}
	return abort, nil
}

// discarded returns the error of a call after the outbox has discarded its Open. It calls unsent,
// which releases the peer's budget, unless the session has ended.
func (x *Calls) discarded(unsent func(), why outbox.Reason) *codec.Abort {
	switch why {
	case outbox.Expired:
		unsent()
		return aborts.NeverSent(ErrTimeUp)
	case outbox.Ended:
		unsent()
		return x.out.errDrains()
	}
	return aborts.NeverSent(x.Cause())
}

// ErrTimeUp is the error of a call that expired before it was sent.
var ErrTimeUp = codec.ErrExpired.Withf("its time was up before it could be sent")

// Announce implements piping.Port.
func (p *callTransport) Announce() {
	p.x.Carrier.Announce(p)
}

// Controls implements outbox.Announcer.
func (p *callTransport) Controls(put func(message.Control)) {
	(*piping.End)(p.pipe).Controls(p.id(), put)
}

// Abandon implements piping.Port.
func (p *callTransport) Abandon(whole int) {
	m := outbox.Message{Type: message.BlockType, Whole: uint32(whole), Offset: uint32(whole), Held: heldAlone}
	p.x.count(heldAlone)
	p.put(&m, carrier.Now) // an error means that the direction has ended, or the peer is lost
}

// Watch implements piping.Port.
func (p *callTransport) Watch() { p.x.watchIdle() }

// Skip implements piping.Port.
func (p *callTransport) Skip(stays uint64) {
	m := outbox.Message{Type: message.ControlType, Control: outbox.Skip, Skipped: stays, Sender: (*piping.End)(p.pipe), Held: heldAlone}
	p.x.count(heldAlone)
	p.put(&m, carrier.Now) // an error means that the peer is lost
}

// Stop implements piping.Port.
func (p *callTransport) Stop(arriving bool) {
	if arriving {
		p.x.Carrier.Ignore(p.id())
	}
	p.x.count(heldAlone)
	// an error means that the peer is lost
	p.put(&outbox.Message{Type: message.ControlType, Held: heldAlone}, carrier.Now)
}

// MaxBlock implements piping.Port.
func (p *callTransport) MaxBlock() int { return int(p.x.maxBlock) }

// Misbehaved implements piping.Port.
func (p *callTransport) Misbehaved(v any) *codec.Abort {
	return guard.Misbehaved(p.x.Coder.Log, "interceptor", v, "function", p.pipe.Function())
}

// put sends m, which has been counted, at the time when. It never blocks.
func (p *callTransport) put(m *outbox.Message, when carrier.When) error {
	return p.handed(m, p.x.Carrier.Put(&p.flow, m, when))
}

// putClose sends a Close, which has been counted, and removes the call from the table.
func (p *callTransport) putClose(result []byte, abort *codec.Abort, held uint32, when carrier.When) {
	err := p.putLast(&outbox.Message{Type: message.CloseType, Payload: result, Abort: abort, Held: held}, when)
	if errors.Is(err, codec.ErrTooLarge) {
		a := codec.ErrTooLarge.Withf("the result: %s", err.(*codec.Abort).Message)
		held = heldClose(nil, a)
		p.x.count(held)
		err = p.putLast(&outbox.Message{Type: message.CloseType, Abort: a, Held: held}, when)
	}
	if err != nil {
		p.x.remove(p.id())
	}
}

// putLast is put for a Close. Shutdown waits until the table is empty, and by then the Close has to
// be in the outbox.
func (p *callTransport) putLast(m *outbox.Message, when carrier.When) error {
	return p.handed(m, p.x.Carrier.PutLast(&p.flow, m, when, func() { p.x.remove(p.id()) }))
}

// handed converts the error of the outbox for m for the pipe.
func (p *callTransport) handed(m *outbox.Message, err error) error {
	if err == nil {
		return nil
	}
	p.x.out.limit.Remove(1, int(m.Held))
	return p.x.sendError(err)
}

// hasExpired is the TTL of a Block that has expired before its last part came.
const hasExpired = math.MaxUint32

// deadline returns the expiry of a message that has arrived with a TTL of ttl milliseconds. Only
// durations cross the wire, so that clocks need not agree.
func deadline(ttl uint32) time.Time {
	switch ttl {
	case 0:
		return time.Time{}
	case hasExpired:
		return time.Now()
	}
	return time.Now().Add(time.Duration(ttl) * time.Millisecond)
}

// deliver hands m to its pipe.
func (p *callTransport) deliver(to *pipe.Pipe, m message.Block) error {
	end := (*piping.End)(to)
	var verdict piping.Verdict
	if m.End {
		verdict = end.EndArrived(m.Meta.Skipped)
	} else {
		b := piping.NewBlock(m.Payload, p.x.Carrier.Keep(m.Payload), m.Meta.Skipped, deadline(m.Meta.TTL))
		p.x.arrived(b.Held())
		if verdict = end.BlockArrived(b); verdict != piping.Accepted {
			p.x.inbound.Remove(1, b.Held())
			b.Release()
		}
	}
	switch verdict {
	case piping.Violation:
		return aborts.Violation("Block for pipe %d after the end of its direction", m.Pipe)
	case piping.Overrun:
		to.Abort(codec.ErrWindow.Withf("pipe %d: the peer sent more than its window allows", m.Pipe))
	}
	return nil
}
