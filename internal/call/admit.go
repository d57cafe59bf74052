package call

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/priority"
)

// Admit implements carrier.Receiver: it checks the head of a message in parts, before any part is
// kept.
func (x *Calls) Admit(h message.Head, whole int, others carrier.Unfinished) (use carrier.Admission, p priority.Priority, err error) {
	switch h.Type {
	case message.OpenType:
		use, err = x.admitOpen(h, others)
	case message.BlockType:
		use, err = x.admitBlock(h)
	default:
		return x.admitClose(h)
	}
	if hard := x.Inbound.Limits().Hard.Bytes; use == carrier.Admitted && hard > 0 && x.Inbound.Held().Bytes+others.Counted+whole > hard {
		err = codec.ErrHardLimit.Withf("inbound: %v wait beside messages of %d bytes that come in parts, and the limit is %v",
			x.Inbound.Held(), others.Counted+whole, x.Inbound.Limits().Hard)
	}
	return use, 0, err
}

// admitOpen checks the cost of an Open, of which only that of its parameters is known.
func (x *Calls) admitOpen(h message.Head, others carrier.Unfinished) (carrier.Admission, error) {
	ok, err := x.Table.begin(h.Pipe, priority.Priority(h.Priority))
	if err != nil {
		return carrier.Late, err
	}
	refused := errShutDown
	if ok {
		cost := uint64(others.Content+h.Content) + uint64(others.Opens+1)*x.terms.Overhead
		if x.serving.dispatcher.Fits(cost) {
			return carrier.Admitted, nil
		}
		refused = dispatch.ErrOpens
	}
	if !ok || x.Table.refuseBegun(h.Pipe) { // otherwise AnnounceEnd has rejected it
		x.turnAwayUnfinished(h.Pipe, priority.Priority(h.Priority), refused)
	}
	return carrier.Late, nil
}

// turnAwayUnfinished rejects an Open of which not all parts have arrived.
func (x *Calls) turnAwayUnfinished(id uint64, p priority.Priority, a *codec.Abort) {
	x.Carrier.Forget(id)
	x.turnAway(&message.Open{Pipe: id, Priority: int8(p)}, a, 0)
}

// GivenUp implements carrier.Receiver.
func (x *Calls) GivenUp(pipe uint64) { x.Table.endBegun(pipe) }

func (x *Calls) admitBlock(h message.Head) (carrier.Admission, error) {
	e, err := x.Table.find(h.Pipe)
	if e == nil {
		return carrier.Late, err
	}
	to := e.Pipe()
	if to == nil {
		// the endpoint decides about Blocks
		return carrier.Ignored, e.block(message.Block{Pipe: h.Pipe})
	}
	switch (*piping.End)(to).Admits(h.Content) {
	case piping.Violation:
		return carrier.Ignored, aborts.Violation("Block for pipe %d after the end of its direction", h.Pipe)
	case piping.Overrun:
		to.Abort(codec.ErrWindow.Withf("pipe %d: the peer sent more than its window allows", h.Pipe))
		return carrier.Ignored, nil
	case piping.Late:
		return carrier.Ignored, nil
	}
	return carrier.Admitted, nil
}

func (x *Calls) admitClose(h message.Head) (carrier.Admission, priority.Priority, error) {
	p, found, err := x.Table.made(h.Pipe)
	if !found {
		return carrier.Late, p, err
	}
	return carrier.Admitted, p, err
}

// Stray implements carrier.Receiver: a part for a pipe that has ended is late.
func (x *Calls) Stray(pipe uint64) error {
	e, err := x.Table.find(pipe)
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

// grow reduces a TTL by the time since the first part of its message arrived.
func grow(m *message.Meta, age time.Duration) {
	if age > 0 && m.TTL > 0 {
		m.TTL = uint32(max(1, int64(m.TTL)-age.Milliseconds()))
	}
}
