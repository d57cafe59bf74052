package call

import (
	"context"
	"errors"
	"strings"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/truncate"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// Calls is the common state of all calls of a session, made and served. Calls have no other
// access to their session.
type Calls struct {
	values.Coder        // these are fixed
	maxBlock     uint32 // bytes of the largest payload that the peer accepts in a Block

	Carrier carrier.Carrier // these lock themselves; sends messages
	admission
	Table   table
	Inbound *limits.Counter // messages that have arrived, and wait for the application

	serving serving // common state of the peer's calls
}

// Dispatcher runs the calls of the peer.
func (x *Calls) Dispatcher() *dispatch.Dispatcher { return &x.serving.dispatcher }

// durable remembers answers to durable calls of the peer.
func (x *Calls) durable() *idempotency.Answers { return &x.common.Durable }

// Cause returns the cause of the end of the session, which must have ended.
func (x *Calls) Cause() *codec.Abort { return codec.AbortOf(context.Cause(x.Carrier.Context())) }

// Fail ends the session with a; only the first cause is kept.
func (x *Calls) Fail(a *codec.Abort) { x.Carrier.End(a) }

// foreign reports whether the peer uses another protocol, behind the Wire.
func (x *Calls) foreign() bool {
	w, _ := x.Carrier.Wire()
	_, ok := w.(wire.Foreign)
	return ok
}

// remove removes a call and its unfinished messages. It reports whether the call was in the table.
func (x *Calls) remove(id uint64) bool {
	there := x.Table.remove(id)
	x.Carrier.Forget(id)
	return there
}

// arrived counts a message that waits for the application.
func (x *Calls) arrived(held int) {
	if x.Inbound.Add(held) == limits.Hard {
		x.Fail(hardLimit("inbound", x.Inbound))
	}
}

// count counts a message that is about to be sent, without blocking.
func (x *Calls) count(held uint32) limits.State {
	state := x.Outbound.Add(int(held))
	if state == limits.Hard {
		x.Fail(hardLimit("outbound", x.Outbound.Counter))
	}
	return state
}

// sendError converts an error of the outbox for the application: the message was not sent.
func (x *Calls) sendError(err error) error {
	var large *outbox.TooLargeError
	switch {
	case errors.As(err, &large):
		return &codec.Abort{Code: codec.TooLarge, Message: large.Error(), Ran: codec.NeverSent}
	case errors.Is(err, outbox.ErrEnded):
		return pipe.ErrEnded
	case errors.Is(err, outbox.ErrNoOpens):
		return x.errDrains()
	default:
		return aborts.NeverSent(x.Cause())
	}
}

// sent returns the part of a that is sent, so that a waiting answer holds no more: the cause of an
// error may hold all data that could not be decoded. The code reaches every peer. A detail that
// exceeds the peer's limit is left out, since a part of it would have another meaning, and the
// message has the remaining bytes.
func (x *Calls) sent(a *codec.Abort) *codec.Abort { return sentWithin(a, x.Carrier.MaxSize()) }

// sentByOpener is sent for a Close of the side that has opened the pipe, which is never sent in
// parts.
func (x *Calls) sentByOpener(a *codec.Abort) *codec.Abort {
	return sentWithin(a, min(x.Carrier.MaxSize(), message.MaxPart))
}

// sentWithin returns the part of a that fits into room bytes.
func sentWithin(a *codec.Abort, room int) *codec.Abort {
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
		b.Message = strings.Clone(truncate.Text(b.Message, most))
	}
	return &b
}

// hardLimit returns the error of a session in which c, of a direction, has exceeded its hard limit.
func hardLimit(direction string, c *limits.Counter) *codec.Abort {
	return codec.ErrHardLimit.Withf("%s: %v wait, and the limit is %v", direction, c.Held(), c.Limits().Hard)
}
