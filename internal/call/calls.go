// Package call runs the calls of both sides on one session.
//
// [Calls] has their common state: the table of running calls by pipe, the room that the peer has
// promised for calls of this side, and the dispatcher for calls of the peer. A Carrier passes it
// the received frames. An [Outbound] is a unary call of this side, [Calls.Open] opens one that
// carries Blocks. An [Inbound] is a call of the peer: it is the context of its handler, and reaches
// the function of this side by a [Handler].
//
// The package knows neither nodes nor functions nor interceptors. Its [Config] names the session,
// and [Common] has what all sessions of a node share.
package call

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/truncate"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Calls is the common state of all calls of a session, made and served. Calls have no other
// access to their session.
type Calls struct {
	Coder    values.Coder // these are fixed
	maxBlock uint32       // bytes of the largest payload that the peer accepts in a Block

	Carrier carrier.Carrier // these lock themselves; sends messages
	out     outgoing
	Table   table
	inbound *flow.Counter // messages that have arrived, and wait for the application
	// as set by SetLimits; nil: those of inbound
	inboundLimits atomic.Pointer[limits.Limits]

	serving serving // common state of the peer's calls
}

// Dispatcher runs the calls of the peer.
func (x *Calls) Dispatcher() *dispatch.Dispatcher { return &x.serving.dispatcher }

// durable remembers answers to durable calls of the peer.
func (x *Calls) durable() *idempotency.Answers { return &x.out.common.Durable }

// clock returns the clock of the node.
func (x *Calls) clock() *Clock { return &x.out.common.Clock }

// Cause returns the cause of the end of the session, which must have ended.
func (x *Calls) Cause() *codec.Abort { return codec.AbortOf(context.Cause(x.Carrier.Context())) }

// Fail ends the session with a; only the first cause is kept.
func (x *Calls) Fail(a *codec.Abort) { x.Carrier.End(a) }

// remove removes a call and its unfinished messages. It reports whether the call was in the table.
func (x *Calls) remove(id uint64) bool {
	there := x.Table.remove(id)
	x.Carrier.Forget(id)
	return there
}

// tooLarge is the error for a message that the peer does not take.
func tooLarge(err *outbox.TooLargeError) *codec.Abort {
	return &codec.Abort{Code: codec.TooLarge, Message: err.Error(), Ran: codec.NeverSent}
}

// sendError converts an error of the outbox for the application: the message was not sent.
func (x *Calls) sendError(err error) error {
	var large *outbox.TooLargeError
	switch {
	case errors.As(err, &large):
		return tooLarge(large)
	case errors.Is(err, outbox.ErrEnded):
		return pipe.ErrEnded
	case errors.Is(err, outbox.ErrNoOpens):
		return x.out.errDrains()
	default:
		return aborts.NeverSent(x.Cause())
	}
}

// sent returns the part of a that is sent, so that a waiting answer holds no more: the cause of an
// error may hold all data that could not be decoded. The code reaches every peer. A detail that
// exceeds the peer's limit is left out, since a part of it would have another meaning, and the
// message has the remaining bytes. A Close of the side that has opened the pipe is never sent in
// parts: see message.MaxPart.
func (x *Calls) sent(a *codec.Abort) *codec.Abort { return sentWithin(a, x.Carrier.MaxSize()) }

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

// Config holds the properties of the calls of a session.
type Config struct {
	Common    *Common
	Scheduler *dispatch.Scheduler
	Carriers  *carrier.Settings
	Session   Session
	Owner     *quota.Owner // of the session
	Values    *values.Codec

	Context context.Context         // of the session
	End     context.CancelCauseFunc // of Context
	Wire    wire.Wire
	TLS     *tls.ConnectionState
	Place   transport.Place     // of the Wire; nil without one
	Dialled bool                // by this side
	Agreed  handshake.Agreement // with the peer

	Plan              *flow.Plan // granted to the peer
	Inbound, Outbound *limits.Limits
	Window            int            // bytes of the largest window
	Windowless        bool           // no windows
	Share             float64        // of lower priorities
	MaxOutstanding    map[uint16]int // by function: outstanding calls
	Private           bool           // keeps errors of handlers on this side
	Offer             Offer

	// called when the state of a direction of the limits changes
	InboundChanged, OutboundChanged func(limits.State)
	Dropped                         func([]outbox.Drop) // called with dropped messages; may be nil
}

// Session is the session of calls.
type Session interface {
	carrier.Session

	// PeerDrains is called when the peer begins to reject new calls.
	PeerDrains()
}

// Offer is what a peer may call.
type Offer struct {
	Functions   *Functions
	Granted     uint8             // bits of the functions permitted by its Grant: see Handler
	MaxPriority priority.Priority // of its calls
}

// leastKeptControls is the minimum number of bytes of Controls that are kept for a peer that does
// not acknowledge them. With more budget there are more streams, and more Controls.
const leastKeptControls = 1 << 20

// usualWindow bounds the window of a stream, in bytes, until the path is known to hold more. Over a
// short path, larger windows exceed the cache of the processor, and calls wait behind them: with a
// whole MiB the median of urgent calls beside a bulk stream is a quarter higher.
const usualWindow = 15 << 16

// Init prepares x. Only then its carrier may run.
func (x *Calls) Init(c *Config) {
	a, foreign := &c.Agreed, false
	x.maxBlock = uint32(a.MaxFrame - outbox.HeadSize)
	if l, ok := c.Wire.(wire.Foreign); ok {
		// called before anything is counted, as it may panic
		x.maxBlock, foreign = uint32(min(a.MaxFrame-outbox.HeadSize, l.MaxBlock())), true
	}
	x.Coder = values.Coder{Codec: c.Values, Session: c.Session}
	x.out.common, x.out.session = c.Common, &x.Carrier
	x.serving.private = c.Private
	x.SetOffer(c.Offer)
	x.inbound = flow.NewCounter(c.Inbound, c.InboundChanged)
	x.inbound.Tell(&c.Owner.Tally)
	x.out.limit = flow.NewCounter(c.Outbound, c.OutboundChanged)
	x.out.limit.Share(c.Share)
	x.out.limit.Tell(&c.Owner.Tally)
	x.promise(c)
	x.out.setPlaces(c.MaxOutstanding)
	if !c.Dialled {
		x.Table.odd = 1
	}
	x.out.keyless = foreign // a foreign peer may not answer Pings either
	x.Carrier.Init(&carrier.Config{
		Settings: c.Carriers, Context: c.Context, End: c.End, Receiver: receiver{x}, Session: c.Session, Wire: c.Wire, TLS: c.TLS, Place: c.Place,
		Out:     outbox.New(uint64(x.Table.odd), a.MaxFrame, uint32(a.Overhead), c.Share, x.out.limit.Remove, c.Dropped),
		Inbound: x.inbound, Outbound: x.out.limit, Tally: &c.Owner.Tally,
		Largest: c.Plan.Largest + outbox.HeadSize,
		Pings:   carrier.Pings{Dialled: c.Dialled, Mute: foreign && a.Ping == 0, Interval: a.Ping, Timeout: a.Timeout},
		Resumes: a.Resume, KeptControls: max(c.Plan.Room/8, leastKeptControls),
	})
}

// promise sets up the grants of this side, by its plan, and those of the peer.
func (x *Calls) promise(c *Config) {
	p, a := c.Plan, &c.Agreed
	x.out.terms.Ledger = dispatchPort{x}
	x.out.terms.Overhead, x.out.terms.Early = uint64(p.Overhead), uint32(p.Window)
	x.out.terms.PeerOverhead, x.out.terms.PeerEarly = a.Overhead, a.Early
	if !c.Windowless {
		x.out.terms.Budget = flow.NewBudget(p)
		x.out.terms.Budget.Heed(&c.Owner.Tally)
		x.out.terms.Most = uint32(max(c.Window, p.Window))
		x.out.terms.Usual = min(x.out.terms.Most, usualWindow)
	}
	x.serving.dispatcher.Init(dispatch.Config{
		Scheduler: c.Scheduler, Output: dispatchPort{x}, Owner: c.Owner, Plan: p, Windows: x.out.terms.Budget,
	})
	opens, largest := int64(min(a.Opens, message.MaxPipe)), int64(uint64(a.MaxFrame)+a.Overhead+a.Early)
	x.out.opens.Init(opens, max(0, min(opens/8, opens-largest)))
	x.out.metadata = a.Metadata
	if a.Extra > 0 && a.Early > 0 {
		x.out.extra = new(flow.Credit)
		x.out.extra.Init(int64(min(a.Extra, message.MaxPipe)), 0)
	}
	x.out.nesting.calls, x.out.nesting.room = int32(a.NestedCalls), int32(a.NestedRoom)
}

// GrantExtra implements flow.ExtraGranter.
func (x *Calls) GrantExtra() {
	x.Carrier.Control(message.Credit{Opens: true, Extra: x.out.terms.Budget.Extra()}, carrier.Now)
}

// SetOffer replaces what the peer may call. No goroutine reads meanwhile.
func (x *Calls) SetOffer(o Offer) {
	x.serving.functions, x.serving.granted, x.serving.highest = o.Functions, o.Granted, o.MaxPriority
}

// Release withdraws what x has counted for the owner of the session, at its end.
func (x *Calls) Release() {
	x.inbound.EndTelling()
	x.out.limit.EndTelling()
	x.serving.dispatcher.End()
}
