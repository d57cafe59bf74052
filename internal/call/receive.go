package call

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/priority"
)

// receiver receives the frames of a session: it is the carrier.Receiver of its Calls.
type receiver struct{ x *Calls }

// Receive implements carrier.Receiver: it processes one frame, a message of type t. age is the time
// since its first part arrived, or 0. An error ends the session.
func (r receiver) Receive(t message.Type, frame []byte, age time.Duration) error {
	switch t {
	case message.OpenType:
		m, err := message.ParseOpen(frame)
		if err != nil {
			return err
		}
		grow(&m.Meta, age, 1)
		return r.receiveOpen(&m, age > 0)
	case message.BlockType:
		m, err := message.ParseBlock(frame)
		if err != nil {
			return err
		}
		grow(&m.Meta, age, hasExpired)
		return r.receiveBlock(m)
	case message.CloseType:
		m, err := message.ParseClose(frame)
		if err != nil {
			return err
		}
		return r.receiveClose(m)
	default:
		m, err := message.ParseControl(frame)
		if err != nil {
			return err
		}
		return r.receiveControl(m)
	}
}

// receiveOpen processes an Open. begun reports that it has arrived in parts, and was checked at its
// first one.
func (r receiver) receiveOpen(m *message.Open, begun bool) error {
	var within *outboundParent
	if m.Meta.Nested {
		within = r.x.Table.outer(m.Meta.Within)
	}
	h := r.x.serving.find(m.Function)
	var initial flow.Window
	refused := r.takeExtra(m, &initial)
	if refused == nil {
		refused = r.refuses(m, h, within)
	}
	if refused == nil {
		c := newInboundCall(r.x, m, h, within, initial)
		initial = flow.Window{}
		ok, err := r.x.Table.accept(c.id(), c, begun)
		if ok {
			arrival{c}.arrive()
		}
		if ok || err != nil {
			return err
		}
		c.freeParams()
		if c.transport.pipe != nil {
			(*piping.End)(c.transport.pipe).CloseArrived(nil, errShutDown)
		}
		refused = errShutDown // Shutdown was called meanwhile, or the session has ended
		r.x.AnnounceEnd(carrier.Now)
	}
	r.x.out.dropHold(&initial)
	if begun {
		if !r.x.Table.refuseBegun(m.Pipe) {
			return nil // AnnounceEnd has rejected it
		}
	} else if err := r.x.Table.check(m.Pipe); err != nil {
		return err
	}
	cost := m.Cost(r.x.out.terms.Overhead, uint64(r.x.out.terms.Early))
	if beyond := r.x.serving.dispatcher.Arrive(cost, m.Meta.Nested); beyond != nil {
		refused, cost = beyond, 0
	}
	r.x.turnAway(m, refused, cost)
	return nil
}

// takeExtra takes the extra credit of an Open, or returns the reason to reject the Open.
func (r receiver) takeExtra(m *message.Open, h *flow.Window) *codec.Abort {
	room := r.x.out.terms.Budget
	if m.Meta.Initial == 0 || room == nil {
		return nil
	}
	ok, granted := room.TakeExtra(h, m.Meta.Initial, r.x)
	flow.Grant(granted)
	if !ok {
		return errExtra
	}
	return nil
}

// errExtra is the error of a peer whose Open takes more extra credit than it was granted.
var errExtra = codec.ErrWindow.Withf("the Open takes more extra credit than there is")

// refuses returns the reason to reject a call before it is created, or nil. h is its function, and
// within the call of this side around it; both may be nil.
func (r receiver) refuses(m *message.Open, h *Handler, within *outboundParent) *codec.Abort {
	switch {
	case h == nil:
		return codec.ErrNoFunction.Withf("function %d", m.Function)
	case m.Meta.Nested && within == nil:
		return codec.ErrCanceled.Withf("the call that it is nested in has ended")
	case within != nil && within.depth >= deepest:
		return codec.ErrOverloaded.Withf("the call is nested %d deep, and %d is the limit", within.depth+1, deepest)
	case len(m.Meta.Metadata) > 0:
		if err := message.CheckMetadata(m.Meta.Metadata); err != nil {
			return codec.AbortOf(err)
		}
	}
	if m.Meta.Nested {
		return nil
	}
	return r.x.out.common.Owners.RejectCall(r.x.Dispatcher().Owner())
}

func (r receiver) receiveBlock(m message.Block) error {
	if r.x.Carrier.HasPart(m.Pipe) { // which may be the Open: then there is no pipe yet
		return overtakes("Block", m.Pipe)
	}
	e, err := r.x.Table.find(m.Pipe)
	if e == nil {
		return err // nil if the pipe has ended: Blocks may cross its Close
	}
	return e.block(m)
}

func (r receiver) receiveClose(m message.Close) error {
	if m.Abort == nil && r.x.Carrier.HasPart(m.Pipe) {
		return overtakes("result", m.Pipe)
	}
	e, err := r.x.Table.take(m.Pipe)
	r.x.Carrier.Forget(m.Pipe)
	switch {
	case err != nil:
		return err
	case e == nil: // the answer may be leaving in parts
		r.x.Carrier.FinishPipe(m.Pipe, outbox.Ended)
		return nil
	case m.Pipe&1 != uint64(r.x.Table.odd):
		defer r.gaveUp()
	}
	return e.closed(m)
}

func (r receiver) receiveControl(m message.Control) error {
	switch c := m.(type) {
	case message.Credit:
		return r.receiveCredit(c)
	case message.Stop:
		return r.toPipe(c.Pipe, func(p *piping.End) error { p.StopArrived(); return nil })
	case message.Skip:
		if r.x.Carrier.HasPart(c.Pipe) {
			return overtakes("Skip", c.Pipe)
		}
		return r.toPipe(c.Pipe, func(p *piping.End) error {
			if !p.SkipArrived(c.Sent) {
				return aborts.Violation("Skip for pipe %d to %d bytes, which have come before or were not granted", c.Pipe, c.Sent)
			}
			return nil
		})
	case message.Ping:
		r.x.Carrier.Ping(c.N)
		if c.Holds > 0 {
			r.x.out.terms.Holds.Store(c.Holds)
		}
	case message.Pong:
		r.x.Carrier.Pong(c.N)
	case message.Ack:
		if !r.x.Carrier.Ack(c.Count) {
			return aborts.Violation("Ack of %d frames, which is more than were sent", c.Count)
		}
	case message.Drain:
		r.x.Table.drainThere(c)
		if r.x.out.retire() {
			r.x.Coder.Session.(Session).PeerDrains()
		}
	case message.SessionClose:
		return carrier.EndedBy(c)
	case message.Sync:
		return aborts.Violation("a second Sync")
	}
	return nil // unknown Controls are ignored
}

func (r receiver) receiveCredit(c message.Credit) error {
	if c.Opens {
		r.x.out.opens.Raise(c.Limit)
		if r.x.out.extra != nil {
			r.x.out.extra.Raise(c.Extra)
		}
		return nil
	}
	return r.toPipe(c.Pipe, func(p *piping.End) error { p.CreditArrived(c.Limit); return nil })
}

// toPipe calls f with the pipe of a Control, if the pipe carries Blocks and has not ended.
func (r receiver) toPipe(id uint64, f func(*piping.End) error) error {
	e, err := r.x.Table.find(id)
	if e == nil {
		return err
	}
	if p := e.Pipe(); p != nil {
		return f((*piping.End)(p))
	}
	return nil
}

// gaveUp is called when the peer has canceled a call, and blocks if the peer does so too often.
func (r receiver) gaveUp() {
	if d := r.x.serving.openRate.pause(r.x.clock().Now()); d > 0 {
		wait.HoldOff(r.x.Carrier.Context(), d)
	}
}

// Admit implements carrier.Receiver: it checks the head of a message in parts, before any part is
// kept.
func (r receiver) Admit(h message.Head, whole int, others carrier.Unfinished) (use carrier.Admission, p priority.Priority, err error) {
	switch h.Type {
	case message.OpenType:
		use, err = r.admitOpen(h, others)
	case message.BlockType:
		use, err = r.admitBlock(h)
	default:
		return r.admitClose(h)
	}
	if h.Type == message.BlockType && r.x.out.terms.Budget != nil {
		return use, 0, err // windows bound the Blocks
	}
	if hard := r.x.inbound.Limits().Hard.Bytes; use == carrier.Admitted && hard > 0 && r.x.inbound.Held().Bytes+others.Counted+whole > hard {
		err = codec.ErrHardLimit.Withf("inbound: %v wait beside messages of %d bytes that come in parts, and the limit is %v",
			r.x.inbound.Held(), others.Counted+whole, r.x.inbound.Limits().Hard)
	}
	return use, 0, err
}

// admitOpen checks the cost of an Open, of which only that of its parameters is known.
func (r receiver) admitOpen(h message.Head, others carrier.Unfinished) (carrier.Admission, error) {
	ok, err := r.x.Table.begin(h.Pipe, priority.Priority(h.Priority))
	if err != nil {
		return carrier.Late, err
	}
	refused := errShutDown
	if ok {
		cost := uint64(others.Content+h.Content) + uint64(others.Opens+1)*r.x.out.terms.Overhead
		if r.x.serving.dispatcher.Fits(cost) {
			return carrier.Admitted, nil
		}
		refused = dispatch.ErrOpens
	}
	if !ok || r.x.Table.refuseBegun(h.Pipe) { // otherwise AnnounceEnd has rejected it
		r.x.turnAwayUnfinished(h.Pipe, priority.Priority(h.Priority), refused)
	}
	return carrier.Late, nil
}

// turnAwayUnfinished rejects an Open of which not all parts have arrived.
func (x *Calls) turnAwayUnfinished(id uint64, p priority.Priority, a *codec.Abort) {
	x.Carrier.Forget(id)
	x.turnAway(&message.Open{Pipe: id, Priority: int8(p)}, a, 0)
}

// GivenUp implements carrier.Receiver.
func (r receiver) GivenUp(h message.Head) {
	if h.Type != message.BlockType {
		r.x.Table.endBegun(h.Pipe)
	} else if p := r.pipe(h.Pipe); p != nil {
		p.BlockAbandoned()
	}
}

// BlockPart implements carrier.Receiver.
func (r receiver) BlockPart(id uint64, got int) (granted int, use carrier.Admission, err error) {
	p := r.pipe(id)
	if p == nil {
		return 0, carrier.Ignored, nil
	}
	granted, v := p.PartArrived(got)
	use, err = r.admission(id, p, v)
	return granted, use, err
}

// errStalledBlock is the error of a pipe with a Block that the peer does not continue.
var errStalledBlock = codec.ErrStalled.Withf("a Block in parts has begun and has credit, and no part of it has come for the timeout of the session")

// BlockIdle implements carrier.Receiver.
func (r receiver) BlockIdle(id uint64, late bool) (credit bool) {
	p := r.pipe(id)
	if p == nil {
		return true
	}
	credit = p.HasCredit()
	if credit && late {
		p.Abort(errStalledBlock)
	}
	return credit
}

// pipe returns the pipe with an id, or nil if it has ended or carries no Blocks here.
func (r receiver) pipe(id uint64) *piping.End {
	e, _ := r.x.Table.find(id)
	if e == nil {
		return nil
	}
	return (*piping.End)(e.Pipe())
}

func (r receiver) admitBlock(h message.Head) (carrier.Admission, error) {
	e, err := r.x.Table.find(h.Pipe)
	if e == nil {
		return carrier.Late, err
	}
	to := e.Pipe()
	if to == nil {
		// the endpoint decides about Blocks
		return carrier.Ignored, e.block(message.Block{Pipe: h.Pipe})
	}
	end := (*piping.End)(to)
	return r.admission(h.Pipe, end, end.BlockBegins(h.Content))
}

// admission returns the decision on the parts of a Block that follows from the verdict of its pipe.
func (r receiver) admission(id uint64, p *piping.End, v piping.Verdict) (carrier.Admission, error) {
	switch v {
	case piping.Accepted:
		return carrier.Admitted, nil
	case piping.Violation:
		return carrier.Ignored, aborts.Violation("Block for pipe %d after the end of its direction", id)
	case piping.Overrun:
		p.Abort(codec.ErrWindow.Withf("pipe %d: the peer sent more than its window allows", id))
	}
	return carrier.Ignored, nil
}

func (r receiver) admitClose(h message.Head) (carrier.Admission, priority.Priority, error) {
	p, found, err := r.x.Table.made(h.Pipe)
	if !found {
		return carrier.Late, p, err
	}
	return carrier.Admitted, p, err
}

// Stray implements carrier.Receiver: a part for a pipe that has ended is late.
func (r receiver) Stray(pipe uint64) error {
	e, err := r.x.Table.find(pipe)
	if e != nil {
		return aborts.Violation("a part of pipe %d, of which no message is unfinished", pipe)
	}
	return err
}

// overtakes returns the error for a message that must not arrive before the last part of an
// unfinished one.
func overtakes(what string, pipe uint64) error {
	return aborts.Violation("%s for pipe %d, of which a message is unfinished", what, pipe)
}

// grow reduces a TTL by the time since the first part of its message arrived. A TTL that has passed
// becomes expired.
func grow(m *message.Meta, age time.Duration, expired uint32) {
	if age == 0 || m.TTL == 0 {
		return
	}
	if left := int64(m.TTL) - age.Milliseconds(); left > 0 {
		m.TTL = uint32(left)
	} else {
		m.TTL = expired
	}
}
