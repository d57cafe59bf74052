package call

import (
	"crypto/tls"

	"context"

	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

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
	Place   transport.Place      // of the Wire; nil without one
	Dialled bool                 // by this side
	Agreed  *handshake.Agreement // with the peer

	Plan              *limits.Plan // granted to the peer
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
// short path, larger windows exceed the cache of the processor.
const usualWindow = 1 << 20

// Init prepares x. Only then its carrier may run.
func (x *Calls) Init(c *Config) {
	a, foreign := c.Agreed, false
	x.maxBlock = uint32(a.MaxFrame - outbox.HeadSize)
	if l, ok := c.Wire.(wire.Foreign); ok {
		// called before anything is counted, as it may panic
		x.maxBlock, foreign = uint32(min(a.MaxFrame-outbox.HeadSize, l.MaxBlock())), true
	}
	x.Coder = values.Coder{Codec: c.Values, Session: c.Session}
	x.common, x.admission.session = c.Common, &x.Carrier
	x.serving.private = c.Private
	x.SetOffer(c.Offer)
	x.Inbound = limits.NewCounter(c.Inbound, c.InboundChanged)
	x.Inbound.Tell(&c.Owner.Tally)
	x.Outbound.Counter, x.Outbound.share = limits.NewCounter(c.Outbound, c.OutboundChanged), c.Share
	x.Outbound.Tell(&c.Owner.Tally)
	x.promise(c)
	x.setWindows(c.MaxOutstanding)
	if !c.Dialled {
		x.Table.odd = 1
	}
	x.opens.keyless = foreign // a foreign peer may not answer Pings either
	x.Carrier.Init(&carrier.Config{
		Settings: c.Carriers, Context: c.Context, End: c.End, Receiver: x, Session: c.Session, Wire: c.Wire, TLS: c.TLS, Place: c.Place,
		Out:     outbox.New(uint64(x.Table.odd), a.MaxFrame, uint32(a.Overhead), c.Share, x.Outbound.Remove, c.Dropped),
		Inbound: x.Inbound, Outbound: x.Outbound.Counter, Tally: &c.Owner.Tally,
		Largest: c.Plan.Largest + outbox.HeadSize,
		Pings:   carrier.Pings{Dialled: c.Dialled, Mute: foreign && a.Ping == 0, Interval: a.Ping, Timeout: a.Timeout},
		Resumes: a.Resume, KeptControls: max(c.Plan.Room/8, leastKeptControls),
	})
}

// promise sets up the grants of this side, by its plan, and those of the peer.
func (x *Calls) promise(c *Config) {
	p, a := c.Plan, c.Agreed
	x.terms.Ledger = dispatchPort{x}
	x.terms.Overhead, x.terms.Early = uint64(p.Overhead), uint64(p.Window)
	x.terms.PeerOverhead, x.terms.PeerEarly = a.Overhead, a.Early
	if !c.Windowless {
		x.terms.Room = limits.NewRoom(p)
		x.terms.Room.Heed(&c.Owner.Tally)
		x.terms.Most = uint64(max(c.Window, p.Window))
		x.terms.Usual = min(x.terms.Most, usualWindow)
	}
	x.serving.dispatcher.Init(dispatch.Config{
		Scheduler: c.Scheduler, Output: dispatchPort{x}, Owner: c.Owner, Plan: p, Windows: x.terms.Room,
	})
	x.opens.init(a.Opens, uint64(a.MaxFrame)+a.Overhead+a.Early)
	x.opens.metadata = a.Metadata
	x.nesting.calls, x.nesting.room = int32(a.NestedCalls), int32(a.NestedRoom)
}

// SetOffer replaces what the peer may call. No goroutine reads meanwhile.
func (x *Calls) SetOffer(o Offer) {
	x.serving.functions, x.serving.granted, x.serving.highest = o.Functions, o.Granted, o.MaxPriority
}

// SetLimits replaces the limits of both directions, which are valid.
func (x *Calls) SetLimits(inbound, outbound limits.Limits) {
	if x.Inbound.SetLimits(inbound) == limits.Hard {
		x.Fail(hardLimit("inbound", x.Inbound))
	}
	if x.Outbound.SetLimits(outbound) == limits.Hard {
		x.Fail(hardLimit("outbound", x.Outbound.Counter))
	}
	x.Outbound.admit()
	x.resize(inbound.Soft)
}

// resize applies a soft limit to new grants.
func (x *Calls) resize(soft limits.Amount) {
	if x.terms.Room == nil {
		return
	}
	bytes := soft.Bytes
	if most := soft.Messages * int(x.terms.Overhead); most > 0 && (bytes == 0 || most < bytes) {
		bytes = most // minimum cost of a message
	}
	p, granted := x.terms.Room.Resize(bytes)
	limits.Grant(granted)
	x.serving.dispatcher.Resize(p)
}

// Release withdraws what x has counted for the owner of the session, at its end.
func (x *Calls) Release() {
	x.Inbound.EndTelling()
	x.Outbound.EndTelling()
	x.serving.dispatcher.End()
}
