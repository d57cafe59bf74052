package call

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/priority"
)

// outgoing holds the conditions for calls from this side of a session: whether they may be sent at
// all, and the budgets that each needs, here and at the peer. A reservation is what one call holds
// of them.
type outgoing struct {
	session *carrier.Carrier // of the session; these are fixed
	common  *Common
	terms   piping.Terms            // grants of both sides
	places  map[uint16]*flow.Credit // for outstanding calls, of the functions that have a bound

	limit   *flow.Counter // these lock themselves
	opens   flow.Credit   // of the peer for calls that wait there; closed when it accepts no more
	extra   *flow.Credit  // of the peer for the first Blocks of streams; nil: none; fixed
	nesting nestedCalls
	waits   waitCounts

	metadata bool // the peer supports metadata of calls; fixed, as keyless
	keyless  bool // it accepts no idempotency keys

	drainsHere  atomic.Bool // Shutdown was called here: new calls of the peer are rejected
	drainsThere atomic.Bool // the peer rejects new calls
}

// Common is the common state of the calls of all sessions of a node.
type Common struct {
	Clock
	Intercepted bool // interceptors of the node are around the calls of peers; fixed, as Handle
	// Handle runs the handler of a call through its interceptors
	Handle func(c HandlerCall, w *dispatch.Workspace) (result []byte, err error)
	// not global, because the channels of calls belong to the bubble of a synctest as the node does
	spares  outbox.Pool         // of *Outbound
	Durable idempotency.Answers // answers to durable calls of peers
	Owners  quota.Owners        // of the sessions
}

// setPlaces bounds the outstanding calls of functions.
func (o *outgoing) setPlaces(calls map[uint16]int) {
	if len(calls) == 0 {
		return
	}
	o.places = make(map[uint16]*flow.Credit, len(calls))
	for function, n := range calls {
		o.places[function] = new(flow.Credit)
		o.places[function].Init(int64(n), 0)
	}
}

// lifetime returns the time at which a new call expires, or the reason why it cannot be made.
func (o *outgoing) lifetime(ctx context.Context, ttl time.Duration) (expires time.Time, a *codec.Abort) {
	switch {
	case o.session.Context().Err() != nil:
		return expires, o.ended()
	case ctx.Err() != nil:
		return expires, aborts.NeverSent(aborts.OfContext(ctx))
	case o.drainsHere.Load(), o.drainsThere.Load():
		return expires, o.errDrains()
	}
	expires, _ = ctx.Deadline()
	if ttl > 0 {
		if end := time.Now().Add(ttl); expires.IsZero() || end.Before(expires) {
			expires = end
		}
	}
	return expires, nil
}

// firstWindow returns the initial cost limit for the Blocks of a stream that this side opens with
// this extra credit.
func (o *outgoing) firstWindow(initial uint64) uint64 {
	if o.terms.PeerEarly == 0 {
		return piping.Unlimited
	}
	return o.terms.PeerEarly + initial
}

// ended returns the error of a call that was not sent because the session has ended.
func (o *outgoing) ended() *codec.Abort {
	return aborts.NeverSent(context.Cause(o.session.Context()))
}

// errDrains returns the error of a call on a session that is being shut down.
func (o *outgoing) errDrains() *codec.Abort {
	who := "the peer"
	if o.drainsHere.Load() {
		who = "this side"
	}
	return aborts.NeverSent(codec.ErrUnavailable.Withf("%s shuts the session down", who))
}

// retire is called when no more calls are made: the peer accepts none, or the session is retired.
// It reports whether that is new.
func (o *outgoing) retire() (first bool) {
	if o.drainsThere.Swap(true) {
		return false
	}
	o.opens.Close()
	return true
}

// reservation is the state that a call from this side holds until its end.
type reservation struct {
	parent *outboundParent // the call as a parent; nil unless a handler made it
	place  *flow.Credit    // that it has one of, of its function; nil without
	cost   int64           // of its Open
}

// leave gives back the place of a call that has ended. The next call starts at once.
func (r *reservation) leave() {
	if r.place != nil {
		r.place.Release(1)
	}
}

// reserve waits until a call from this side may be sent: the session accepts it, and the bound of
// its function, the peer's budget and this session's limit allow it. It sets the optional part of
// the Open. stream describes the Blocks, or is nil. A nested call waits only for this session's
// outbound limit.
func (o *outgoing) reserve(ctx context.Context, open *outbox.Message, cfg *Options, stream *message.Meta) (r reservation, a *codec.Abort) {
	if open.Expires, a = o.lifetime(ctx, cfg.TTL); a != nil {
		return r, a
	}
	if len(cfg.Key) > 0 && o.keyless {
		return r, errKeyless
	}
	var metadata []byte
	if r.parent, metadata, a = o.surroundings(ctx, open.Function, cfg); a != nil {
		return r, a
	}
	open.Meta = r.parent.meta(cfg, metadata, stream)
	if err := o.session.CheckSize(open); err != nil { // there would never be credit for it
		return reservation{}, tooLarge(err)
	}
	r.cost = o.costOf(open)
	if r.parent != nil {
		a = o.nesting.reserve(r.parent.depth, r.cost)
	} else {
		a = o.waitForRoom(ctx, &r, open.Function, cfg)
	}
	if a != nil {
		return reservation{}, a
	}
	open.Held = heldOpen(open)
	if a = o.waitToSend(ctx, cfg.Priority, open.Held); a != nil {
		o.unsent(r.parent, r.cost)
		o.giveBack(&r)
		return reservation{}, a
	}
	return r, nil
}

// errKeyless is the error of a durable call to a peer of another protocol.
var errKeyless = aborts.NeverSent(codec.ErrBadParams.Withf("the protocol of the peer carries no idempotency key, so that the call may run twice after a cut: where that does no harm, make it without WithDurable and WithIdempotencyKey, and make it again"))

// handledIn returns the call that a handler with ctx serves, or nil if ctx belongs to no handler of
// this session.
func (o *outgoing) handledIn(ctx context.Context) inboundParent {
	if c, _ := carriedBy(ctx); o.serves(c) {
		return c
	}
	return nil
}

// serves reports whether c is a call of this session; it may be nil.
func (o *outgoing) serves(c inboundParent) bool {
	return c != nil && c.nesting() == &o.nesting
}

// surroundings returns a call made with ctx as a parent, or nil if no handler of this session makes
// it, and its encoded metadata, or nil. It looks ctx up once for both.
func (o *outgoing) surroundings(ctx context.Context, function uint16, cfg *Options) (r *outboundParent, metadata []byte, a *codec.Abort) {
	c, m := carriedBy(ctx)
	if o.serves(c) {
		if err := c.callsBack(); err != nil {
			return nil, nil, aborts.NeverSent(err)
		}
		r = &outboundParent{by: c, function: function, depth: int32(c.depth() + 1)}
	}
	if m = MergeMetadata(m, cfg.Metadata); len(m) == 0 {
		return r, nil, nil
	}
	metadata, err := message.AppendMetadata(nil, m)
	switch {
	case err != nil:
		return nil, nil, aborts.NeverSent(err)
	case !o.metadata:
		return r, nil, nil
	}
	return r, metadata, nil
}

// waitForRoom waits for a place of the function, and for credit of the peer.
func (o *outgoing) waitForRoom(ctx context.Context, r *reservation, function uint16, cfg *Options) (a *codec.Abort) {
	if r.place, a = o.waitForPlace(ctx, function, cfg.Priority, r.cost); a != nil {
		return a
	}
	if a = o.waitForOpens(ctx, r.cost, cfg.Priority); a != nil {
		r.leave()
	}
	return a
}

// unsent releases the peer's budget that the Open of a call would have used. The call is not nested
// if outer is nil.
func (o *outgoing) unsent(outer *outboundParent, cost int64) {
	if outer == nil {
		o.opens.Release(cost)
	}
}

// giveBack releases the state that a call has held until its end.
func (o *outgoing) giveBack(r *reservation) {
	r.leave()
	if r.parent != nil {
		o.nesting.giveBack(r.cost)
	}
}

// costOf returns the cost of open at the peer.
func (o *outgoing) costOf(open *outbox.Message) int64 {
	cost := uint64(len(open.Payload)) + o.terms.PeerOverhead
	if m := open.Meta; m != nil {
		cost += uint64(len(m.Trace) + len(m.Key) + len(m.Metadata))
		if m.Stream {
			cost += o.terms.PeerEarly
		}
	}
	return int64(cost)
}

// mostInitial is the largest window, in bytes, with which a stream begins at the peer.
const mostInitial = 64 << 10

// takeExtra returns the extra credit that the Open of a stream takes for the first Blocks. No Open
// waits for it. The window of the stream becomes mostInitial, but the Open takes at most an eighth
// of the remaining credit: many streams opened at once share it.
func (o *outgoing) takeExtra() uint64 {
	if o.extra == nil || o.terms.PeerEarly >= mostInitial {
		return 0
	}
	for {
		n := min(int64(mostInitial-o.terms.PeerEarly), o.extra.Left()/8)
		if n <= 0 {
			return 0
		}
		if o.extra.TryAcquire(n) {
			return uint64(n)
		}
	}
}

// nestAgain takes the window of a nested stream after a failure, if ended streams have held room in
// vain.
func (o *outgoing) nestAgain(h *flow.Window) bool {
	dropped, _ := o.terms.DropLeft()
	return dropped && o.terms.Budget.Nest(h)
}

// holdWindow reserves a window for the Blocks of the callee, before the Open of a stream may leave,
// so that the stream blocks no other. It waits for budget, but not for a nested call: those windows
// have a budget of their own. The waiting call holds bytes of parameters.
func (o *outgoing) holdWindow(ctx context.Context, p priority.Priority, bytes int) (h flow.Window, granted uint64, a *codec.Abort) {
	room := o.terms.Budget
	if room == nil {
		return h, piping.Unlimited, nil
	}
	if o.handledIn(ctx) != nil {
		if !room.Nest(&h) && !o.nestAgain(&h) {
			return h, 0, aborts.NeverSent(codec.ErrOverloaded.Withf("the windows of nested streams hold all of their room, %d bytes", room.Plan().NestedOwn))
		}
		return h, h.Bytes(), nil
	}
	t := flow.NewTicket(p, 0)
	if !room.Acquire(flow.Made, &t.Waiter) {
		if a := o.waitForStream(ctx, t, bytes); a != nil {
			return h, 0, a
		}
	}
	room.Opened(&t.Waiter, &h)
	if h.Extra == 0 { // the next stream may get more
		o.terms.DropLeft()
	}
	return h, h.Bytes(), nil
}
