package asterisque

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/wire"
)

// Session is the conversation of two nodes over a Wire. Both sides may call functions of the other,
// at the same time. All methods are safe for concurrent use.
type Session struct {
	id     [message.SessionSize]byte // these are fixed once the handshake is over
	shared *shared
	cfg    *config
	svc    *Service

	peerID string // see Peer
	owner  *owner

	exchange // these lock themselves
	calls    dispatcher
	inline   *workspace // of the reader; nil until there is an inline call

	res    *resumption   // nil unless the session can be resumed; fixed
	holder sessionHolder // fixed

	highest priority.Priority // that the peer's calls get; fixed

	// ends the session with the certificate of the peer; nil without; belongs to who reads
	expiry *time.Timer
}

// Peer is what is known of the other side of a session.
type Peer struct {
	ID         string   // as it calls itself: proves nothing
	LocalAddr  net.Addr // of the Wire
	RemoteAddr net.Addr
	// of the Wire; nil if that is not encrypted by TLS; see Certificate
	TLS        *tls.ConnectionState
	Credential []byte // what the peer showed, for Access.Accept only; see Access.Credential
	// who the peer is, as Access.Accept found out; empty on the side that dialled
	Subject string
}

// String says who the peer is, for logs: without its credential, and what TLS knows.
func (p Peer) String() string {
	parts := []string{fmt.Sprintf("%q", p.ID)}
	if p.Subject != "" {
		parts = append(parts, fmt.Sprintf("subject %q", p.Subject))
	}
	return strings.Join(append(parts, fmt.Sprint("at ", p.RemoteAddr)), " ")
}

// GoString implements fmt.GoStringer.
func (p Peer) GoString() string { return "asterisque.Peer{" + p.String() + "}" }

// LogValue implements slog.LogValuer.
func (p Peer) LogValue() slog.Value { return slog.StringValue(p.String()) }

// String returns the beginning of the ID, as logs have it.
func (s *Session) String() string { return hex.EncodeToString(s.id[:4]) }

// newSession makes a session of what the handshake agreed on. The caller lets its carrier run.
func newSession(sh *shared, holder sessionHolder, h *handshake, a agreement, g Grant, dialled bool) *Session {
	cfg, w := h.cfg, h.w
	maxBlock := a.maxFrame - outbox.HeadSize
	if l, ok := w.(wire.BlockLimiter); ok {
		// which may panic, and so is asked before anything is counted
		maxBlock = min(maxBlock, l.MaxBlock())
	}
	s := &Session{
		id: a.session, shared: sh, holder: holder, cfg: cfg, peerID: a.about.ID, owner: sh.owners.join(&a.about), svc: g.Service, highest: *g.MaxPriority,
	}
	s.exchange.Session = s
	s.values = values{valueCodec: a.values, session: s}
	if cfg.tracer != nil {
		s.trace = s.traced
	}
	ctx, end := context.WithCancelCause(context.Background())
	s.inbound = limits.NewCounter(g.inbound, s.reporter(Inbound))
	s.inbound.Tell(&s.owner.tally)
	s.owner.tally.Add(heldSession)
	s.ctx, s.common = ctx, &sh.common
	s.outbound.Counter, s.outbound.share = limits.NewCounter(g.outbound, s.reporter(Outbound)), cfg.share
	s.outbound.Tell(&s.owner.tally)
	s.promise(&a, g.plan)
	s.setWindows(cfg.windows)
	if !dialled {
		s.table.odd = 1
	}
	s.maxBlock = maxBlock
	if a.resume {
		s.res = &resumption{secret: a.secret, agreed: a.promises, plan: g.plan, granted: g.limits()}
	}
	_, foreign := w.(wire.Windowless) // which need not answer Pings
	s.carrier.Init(&carrier.Config{
		Settings: &sh.carriers, Context: ctx, End: end, Upper: (*upper)(s), Wire: w, TLS: a.about.TLS, Place: placeOrNil(h.place),
		Out:     outbox.New(uint64(s.table.odd), a.maxFrame, uint32(a.overhead), cfg.share, s.outbound.Remove, s.dropReporter()),
		Inbound: s.inbound, Outbound: s.outbound.Counter, Tally: &s.owner.tally,
		Largest: g.plan.Largest + outbox.HeadSize,
		Pings:   carrier.Pings{Dialled: dialled, Mute: foreign && a.ping == 0, Interval: a.ping, Timeout: a.timeout},
		Resumes: a.resume, KeptControls: max(g.plan.Room/8, leastKeptControls),
	})
	return s
}

// promise sets up what this side has promised its peer, by its plan, and what the peer has
// promised.
func (s *Session) promise(a *agreement, p *limits.Plan) {
	s.terms.Ledger = outlets{s}
	s.terms.Overhead, s.terms.Early = uint64(p.Overhead), uint64(p.Window)
	s.terms.PeerOverhead, s.terms.PeerEarly = a.overhead, a.early
	s.calls = dispatcher{
		staff: &s.shared.staff, outlet: outlets{s}, plan: p,
		ready: newJobQueue(taskToWorker), room: openRoom{owner: s.owner},
	}
	s.calls.holding.part.Begin(&s.owner.tally)
	s.opens.init(a.opens, uint64(a.maxFrame)+a.overhead+a.early)
	s.nesting.calls, s.nesting.room = int32(a.nestedCalls), int32(a.nestedRoom)
	if s.cfg.windowless {
		return
	}
	s.terms.Room = limits.NewRoom(p)
	s.calls.windows = s.terms.Room
	s.terms.Room.Heed(&s.owner.tally)
	s.terms.Largest = uint64(max(s.cfg.window, p.Window))
	s.calls.room.opens = limits.NewOpens(p)
}

// endTelling takes what the session has told its owner that it holds back.
func (s *Session) endTelling() {
	s.inbound.EndTelling()
	s.outbound.EndTelling()
	s.calls.holding.part.End()
	s.owner.tally.Add(-heldSession)
}

// early returns what a peer may send at first on a stream that it opens.
func (s *Session) early() uint64 {
	if s.terms.Room == nil {
		return piping.Unlimited
	}
	return s.terms.Early
}

// limitOf returns the limit that a peer has announced.
func limitOf(announced uint64) uint64 {
	if announced >= message.MaxPipe {
		return piping.Unlimited
	}
	return announced
}

// ID returns the 16 bytes that name the session on both sides, for logs.
func (s *Session) ID() [16]byte { return s.id }

// Peer returns what is known of the other side.
func (s *Session) Peer() Peer {
	w, secure := s.carrier.Wire()
	return Peer{ID: s.peerID, LocalAddr: w.LocalAddr(), RemoteAddr: w.RemoteAddr(), TLS: secure, Subject: s.owner.subject}
}

// foreign reports whether the peer speaks another protocol, behind the Wire.
func (s *Session) foreign() bool {
	w, _ := s.carrier.Wire()
	_, ok := w.(wire.Windowless)
	return ok
}

// RoundTrip returns how long the latest Ping of this side took there and back, 0 before the first
// one. Pings are sent only while the session is idle: see [Timeouts].Ping.
func (s *Session) RoundTrip() time.Duration { return s.carrier.RoundTrip() }

// Done returns a channel that is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err returns nil while the session is up, and then why it ended: ErrSessionClosed, or the *Abort
// of what went wrong.
func (s *Session) Err() error { return context.Cause(s.ctx) }

// Close ends the session at once: running calls of both sides end with ErrSessionClosed, and so do
// all that wait, except for calls of the peer that have not begun, which are refused with
// ErrUnavailable, as far as the Wire takes that without waiting. What has been given to the Wire,
// or is about to be, still arrives if the peer reads within a second. Close returns when the Wire
// is closed and the session's own goroutines have ended; handlers that ignore their context may run
// on. Repeated calls wait as well.
//
// Handlers and callbacks may call it. While the goroutine that reads the session runs code of the
// application, an inline handler or the function of [WithKey], Close does not wait for that.
func (s *Session) Close() error {
	s.announceEnd()
	s.refuseWaiting()
	s.fail(codec.ErrSessionClosed.Withf("closed by this side"))
	s.carrier.Wait()
	return nil
}

// Shutdown ends the session in good order: new calls of either side are refused with
// ErrUnavailable, running ones may finish, and then it closes. If ctx ends first, the session is
// closed as by Close, and the error is that of ctx.
//
// A call of the peer that had not arrived before, or that is refused, certainly did not run, and
// [Repeatable] says so there. Of one that had arrived, and whose answer or refusal the peer does
// not get, it says that it may have run, even if it was still waiting here when ctx ended.
//
// With the context of a handler that the session runs, it cannot wait for the end of that. Then it
// returns nil at once, and the session goes on by itself to the end of its running calls. With
// another context, called by a handler, it waits for that handler, until the context ends.
func (s *Session) Shutdown(ctx context.Context) error {
	s.announceEnd()
	if calledBy(ctx) == s {
		go s.Shutdown(context.Background()) // ends with the running calls
		return nil
	}
	err := s.drain(ctx)
	s.Close()
	return err
}

// calledBy returns the session of the running call whose handler has ctx, or nil.
func calledBy(ctx context.Context) *Session {
	if ctx.Err() != nil {
		return nil
	}
	return SessionOf(ctx)
}

// announceEnd tells the peer which of its calls will still run: those that have arrived. What is
// refused afterwards reaches the peer after that, so that it knows why.
func (s *Session) announceEnd() {
	if !s.draining.Load() {
		// also if somebody else is about to: what the caller refuses has to come after it
		s.carrier.Control(s.table.drainHere(), carrier.Now)
		s.draining.Store(true)
	}
}

// refuseWaiting refuses the calls of the peer that have not begun, as far as the outbound soft
// limit allows. What the Wire does not take at once is lost with the session.
func (s *Session) refuseWaiting() {
	_, endpoints := s.table.infos()
	for _, e := range endpoints {
		if s.outbound.State() >= limits.Soft || s.ctx.Err() != nil {
			return
		}
		if c, ok := e.(*served); ok && s.calls.waits(c) && s.calls.withdraw(c).waits() {
			c.refuse(errShutDown)
		}
	}
}

var errShutDown = codec.ErrUnavailable.Withf("the session is being shut down")

// drain waits until no call runs and all answers have been given to the Wire, or the session has
// ended.
func (s *Session) drain(ctx context.Context) error {
	for _, wait := range []func() <-chan struct{}{s.carrier.Flush, s.table.drained, s.carrier.Flush} {
		select {
		case <-wait():
		case <-s.ctx.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Flush waits until everything sent before has been given to the Wire; that the peer has it, it
// does not say. The error is that of ctx, as an *[Abort], or why the session ended.
func (s *Session) Flush(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return s.cause() // what waited at the end was dropped
	}
	select {
	case <-s.carrier.Flush():
		return nil
	case <-s.ctx.Done():
		return s.cause()
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// drained returns the error of a call that the Drain of the peer has refused, when the session ends
// because of a before the peer's answer has come.
func drained(a *Abort) *Abort {
	return &Abort{Code: codec.Unavailable, Message: "the peer shut the session down before the call arrived", Remote: true, Ran: codec.Refused, Cause: a}
}

// LogValue implements slog.LogValuer.
func (s *Session) LogValue() slog.Value { return slog.StringValue(s.String()) }
