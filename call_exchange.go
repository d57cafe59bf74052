package asterisque

import (
	"context"
	"errors"
	"strings"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/cut"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// exchange is what all calls of a session have in common, those that this side makes and those that
// it serves. A call knows no more of its session than this.
type exchange struct {
	values          // these are fixed
	maxBlock uint32 // bytes of the largest payload that the peer takes in a Block
	// the end of the session is told, and nothing after it; guarded by the reports of the node, and
	// here because it costs no memory beside maxBlock
	told bool

	carrier carrier.Carrier // these lock themselves; takes what leaves
	outgoing
	table   table
	inbound *limits.Counter // what has arrived, and waits for the application

	serving *serving // what the calls of the peer have in common; fixed
}

// plain reports whether nothing stands around a call of this side with such options.
func (x *exchange) plain(cfg *callConfig) bool {
	return x.common.outward == nil && !cfg.durable && cfg.around == nil
}

// cause returns why the session ended, which it must have.
func (x *exchange) cause() *Abort { return codec.AbortOf(context.Cause(x.ctx)) }

// fail ends the session because of a; only the first cause is kept.
func (x *exchange) fail(a *Abort) { x.carrier.End(a) }

// foreign reports whether the peer speaks another protocol, behind the Wire.
func (x *exchange) foreign() bool {
	w, _ := x.carrier.Wire()
	_, ok := w.(wire.Foreign)
	return ok
}

// remove takes a call out of the table, with what is unfinished of its pipe. It reports whether the
// call was there.
func (x *exchange) remove(id uint64) bool {
	there := x.table.remove(id)
	x.carrier.Forget(id)
	return there
}

// arrived counts a message that waits for the application.
func (x *exchange) arrived(held int) {
	if x.inbound.Add(held) == limits.Hard {
		x.fail(hardLimit(Inbound, x.inbound))
	}
}

// count counts a message that is about to be sent, without waiting.
func (x *exchange) count(held uint32) limits.State {
	state := x.outbound.Add(int(held))
	if state == limits.Hard {
		x.fail(hardLimit(Outbound, x.outbound.Counter))
	}
	return state
}

// sendError makes an error for the application of one of the outbox: the message was not sent.
func (x *exchange) sendError(err error) error {
	var large *outbox.TooLargeError
	switch {
	case errors.As(err, &large):
		return &Abort{Code: codec.TooLarge, Message: large.Error(), Ran: codec.NeverSent}
	case errors.Is(err, outbox.ErrEnded):
		return pipe.ErrEnded
	case errors.Is(err, outbox.ErrNoOpens):
		return x.errDrains()
	default:
		return neverSent(x.cause())
	}
}

// sent returns of a what is sent, so that an answer holds no more than that while it waits. What an
// error was caused by may hold all that could not be decoded. The code gets through to every peer:
// a detail that does not fit what it takes is left out, since a part of it would say something
// else, and the message has the room that the detail leaves.
func (x *exchange) sent(a *Abort) *Abort { return sentWithin(a, x.carrier.MaxSize()) }

// sentByOpener is sent for a Close of the side that has opened the pipe, which never crosses in
// parts.
func (x *exchange) sentByOpener(a *Abort) *Abort {
	return sentWithin(a, min(x.carrier.MaxSize(), message.MaxPart))
}

// sentWithin returns of a what fits into room bytes.
func sentWithin(a *Abort, room int) *Abort {
	if a == nil {
		return nil
	}
	detail := a.Detail
	if len(detail) > room {
		detail = nil
	}
	most := min(codec.MaxReason, room-len(detail))
	if a.Cause == nil && len(a.Message) <= most && len(detail) == len(a.Detail) {
		return a
	}
	b := *a
	b.Cause, b.Detail = nil, detail
	if len(b.Message) > most {
		b.Message = strings.Clone(cut.Text(b.Message, most))
	}
	return &b
}
