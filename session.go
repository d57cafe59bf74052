package asterisque

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/cut"
	"github.com/asterisque-go/asterisque/internal/guard"
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
	window uint64 // what the Blocks of a stream that this side opens may cost at first
	values
	svc *Service

	peerID string // see Peer
	owner  *owner

	frame int // bytes of the frame that is being dealt with; belongs to the reader, as unwritten

	// These belong to who reads and to who writes; whoever resumes the session changes them when
	// neither does, with wireMu held, under which others look at them.
	wireMu   sync.Mutex
	wire     wire.Wire
	tls      *tls.ConnectionState
	try      wire.TryWriter // nil if the Wire cannot write without waiting
	keeper   keeper         // nil if the Wire keeps its frames' memory
	wireGone chan struct{}  // see wireEnd; nil until somebody waits for that
	// what the Wire has at the door; nil on the side that connected, and without a Wire
	place *entry

	ctx context.Context // ends with the session; its cause is why
	end context.CancelCauseFunc

	out     *outbox.Outbox // these lock themselves
	table   table
	inbound *limits.Counter
	outgoing
	terms    piping.Terms
	maxBlock int // bytes of the largest payload that the peer takes in a Block; fixed
	calls    dispatcher
	inline   *scratch // of the reader; nil until there is an inline call

	streaming atomic.Uint64 // see streams: 1 + how many frames had arrived

	stops   atomic.Uint64 // how often the reader had to stop at the soft limit
	stopped atomic.Int64  // for how long in all, in nanoseconds
	stall   stall
	pause   pause
	live    liveness
	pongs   pongs

	res    *resumption   // nil unless the session can be resumed; fixed
	got    atomic.Uint64 // countable frames that have arrived and been dealt with
	acking atomic.Bool   // the timer of res will send an Ack
	away   atomic.Bool   // it has no Wire, and waits for another one
	// holds one when the writer has found out that the Wire is lost, and stays the writer; nil
	// without res
	halted chan struct{}
	holder sessionHolder // fixed

	failing sync.Once
	// guarded by wireMu: somebody closes the Wire, and wireGone says when that is over; here it
	// costs no memory, as the next
	wireCloses bool
	// the reader is the writer, and writes when it has dealt with all that has arrived; here it
	// costs no memory, as the next
	unwritten bool
	highest   priority.Priority // that the peer's calls get; fixed

	linger *time.Timer // closes the Wire some time after the end of the session; set by failing
	// ends the session with the certificate of the peer; nil without; belongs to who reads
	expiry  *time.Timer
	told    chan struct{}  // closed by the writer when nothing will ever be written again
	writers sync.WaitGroup // goroutines in writeLoop, and who says goodbye
	gone    chan struct{}  // closed when nobody reads or writes any more, nor ever will
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

// newSession makes a session of what the handshake agreed on. Whoever calls it starts read.
func newSession(sh *shared, holder sessionHolder, cfg *config, w wire.Wire, a agreement, g Grant, dialled bool) *Session {
	maxBlock := a.maxFrame - outbox.HeadSize
	if l, ok := w.(wire.BlockLimiter); ok {
		// which may panic, and so is asked before anything is counted
		maxBlock = min(maxBlock, l.MaxBlock())
	}
	s := &Session{
		id: a.session, shared: sh, holder: holder, cfg: cfg, window: a.window, peerID: a.about.ID, owner: sh.owners.join(&a.about), svc: g.Service, highest: *g.MaxPriority,
		told: make(chan struct{}), gone: make(chan struct{}),
	}
	s.values = values{valueCodec: a.values, session: s}
	s.setWire(w, a.about.TLS)
	if _, foreign := w.(wire.Windowless); !foreign || a.ping > 0 {
		// one of another protocol need not answer Pings
		s.live.agree(cfg, &a, dialled)
	}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	s.inbound = limits.NewCounter(g.inbound, s.reporter(Inbound))
	s.inbound.Tell(&s.owner.tally)
	s.live.part.Begin(&s.owner.tally)
	s.owner.tally.Add(heldSession)
	s.outgoing.ctx, s.outgoing.clock, s.outgoing.terms = s.ctx, &sh.uptime, &s.terms
	s.outbound.Counter, s.outbound.share = limits.NewCounter(g.outbound, s.reporter(Outbound)), cfg.share
	s.outbound.Tell(&s.owner.tally)
	s.promise(&a, g.plan)
	s.setWindows(cfg.windows)
	if !dialled {
		s.table.odd = 1
	}
	s.out = outbox.New(uint64(s.table.odd), a.maxFrame, uint32(a.overhead), cfg.share, s.outbound.Remove, s.dropReporter())
	s.maxBlock = maxBlock
	if a.resume {
		s.halted = make(chan struct{}, 1)
		s.res = &resumption{secret: a.secret, agreed: a.promises, plan: g.plan, granted: g.limits()}
		s.out.Keep(s.got.Load, max(g.plan.Room/8, leastKeptControls))
	} else if _, ok := w.(wire.VectorWriter); ok {
		s.out.Lend()
	}
	return s
}

// promise sets up what this side has promised its peer, by its plan, and what the peer has
// promised.
func (s *Session) promise(a *agreement, p *limits.Plan) {
	s.terms.Ledger = &s.calls
	s.terms.Overhead, s.terms.Early = uint64(p.Overhead), uint64(p.Window)
	s.terms.PeerOverhead, s.terms.PeerEarly = a.overhead, a.early
	s.calls = dispatcher{s: s, plan: p, ready: line{is: inReady}}
	s.calls.part.Begin(&s.owner.tally)
	s.opens.init(a.opens, uint64(a.maxFrame)+a.overhead+a.early)
	s.nesting.calls, s.nesting.room = int32(a.nestedCalls), int32(a.nestedRoom)
	if s.cfg.windowless {
		return
	}
	s.terms.Room = limits.NewRoom(p)
	s.terms.Room.Heed(&s.owner.tally)
	s.terms.Largest = uint64(max(s.cfg.window, p.Window))
	s.calls.opens = limits.NewOpens(p)
}

// endTelling takes what the session has told its owner that it holds back.
func (s *Session) endTelling() {
	s.inbound.EndTelling()
	s.outbound.EndTelling()
	s.calls.part.End()
	s.live.part.End()
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
	s.wireMu.Lock()
	w, secure := s.wire, s.tls
	s.wireMu.Unlock()
	return Peer{ID: s.peerID, LocalAddr: w.LocalAddr(), RemoteAddr: w.RemoteAddr(), TLS: secure, Subject: s.owner.subject}
}

// foreign reports whether the peer speaks another protocol, behind the Wire.
func (s *Session) foreign() bool {
	s.wireMu.Lock()
	defer s.wireMu.Unlock()
	_, ok := s.wire.(wire.Windowless)
	return ok
}

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
	s.awaitEnd()
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
		s.control(s.table.drainHere())
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
		if c, ok := e.(*incoming); ok && s.calls.queued(c) && s.calls.leave(c).waits() {
			c.refuse(errShutDown)
		}
	}
}

var errShutDown = codec.ErrUnavailable.Withf("the session is being shut down")

// drain waits until no call runs and all answers have been given to the Wire, or the session has
// ended.
func (s *Session) drain(ctx context.Context) error {
	for _, wait := range []func() <-chan struct{}{s.out.Flush, s.table.drained, s.out.Flush} {
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
	case <-s.out.Flush():
		return nil
	case <-s.ctx.Done():
		return s.cause()
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// cause returns why the session ended, which it must have.
func (s *Session) cause() *Abort { return codec.AbortOf(context.Cause(s.ctx)) }

// read is the life of a session over one Wire, and ends with that. Then the session is away, or
// over.
func (s *Session) read() { s.runTo(s.serve) }

// serve reads the Wire until that is lost, and reports whether the session is over.
func (s *Session) serve() (over bool) {
	a := s.readLoop()
	if s.resumable(a) {
		s.leave(a)
		return !s.standBy() // whoever claims it goes on
	}
	s.fail(a)
	if a.Code != codec.Protocol {
		s.closeWire() // nobody is there to be told why
	}
	return true
}

// finish is called once, at the end, by the owner of the session, when it has ended and nobody
// reads any more: it waits for those who still write, and lets go of all that the session has.
func (s *Session) finish() {
	select {
	case <-s.told:
	case <-s.halted: // nobody writes any more
	case <-s.whileAway():
	}
	s.closeWire()
	// which finds that it is closed, and lets go of what it has read
	guard.Apart(s.cfg.log, s.wire, func() { s.wire.ReadFrame(0) })
	s.linger.Stop()
	s.stall.end()
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.failing.Do(func() {}) // somebody may be in it, and about to write
	s.writers.Wait()
	s.outbound.end()
	s.dropRecord()
	defer close(s.gone) // also if the log ends the goroutine
	s.holder.sessionEnded(s)
	s.endTelling()
	s.shared.owners.leave(s.owner)
	s.cfg.log.Info("session ends", "session", s, "cause", s.cause())
}

// whileAway returns a channel that is closed if the session is away, and nil, which never is, if it
// is not.
func (s *Session) whileAway() <-chan struct{} {
	if s.away.Load() {
		return s.wireEnd()
	}
	return nil
}

// setWire makes w the Wire, whose TLS is in state secure, if it has any. It is called while nobody
// reads or writes.
func (s *Session) setWire(w wire.Wire, secure *tls.ConnectionState) {
	s.wireMu.Lock()
	defer s.wireMu.Unlock()
	s.wire, s.wireGone, s.wireCloses = w, nil, false
	s.try, _ = w.(wire.TryWriter)
	s.keeper, _ = w.(keeper)
	s.tls = secure
}

// setPlace notes what the Wire has at the door, which is left with it from then on.
func (s *Session) setPlace(p *entry) {
	s.wireMu.Lock()
	defer s.wireMu.Unlock()
	s.place = p
}

// gone stands for the end of what has ended.
var gone = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// wireEnd returns a channel that is closed when the Wire is.
func (s *Session) wireEnd() <-chan struct{} {
	s.wireMu.Lock()
	defer s.wireMu.Unlock()
	if s.wireGone == nil {
		s.wireGone = make(chan struct{})
	}
	return s.wireGone
}

// currentWire returns the Wire for those who neither read nor write.
func (s *Session) currentWire() wire.Wire {
	s.wireMu.Lock()
	defer s.wireMu.Unlock()
	return s.wire
}

// fail ends the session because of a; only the first cause is kept. Unless the peer said it, it is
// told, and the Wire stays open for a moment so that it can hear.
func (s *Session) fail(a *Abort) {
	if s.ctx.Err() != nil {
		return // it may be the end of one of its calls that got here
	}
	write := false
	s.failing.Do(func() {
		s.linger = time.AfterFunc(lingerTime(a), s.closeWire) // before run can know of the end
		s.end(a)
		var goodbye message.Control
		if !a.Remote {
			goodbye = message.SessionClose{Code: a.Code, Message: cut.Text(a.Message, s.out.MaxSize())}
		}
		if write = s.out.Close(goodbye); write { // after this no pipe departs
			s.writers.Add(1)
		}
		open, refused := s.table.end()
		for _, e := range open {
			e.fail(a)
		}
		for _, e := range refused {
			e.fail(drained(a))
		}
	})
	if write {
		defer s.writers.Done() // also if the Wire ends the goroutine
		s.write()
	}
	if s.res == nil {
		return
	}
	if ok, _ := s.claim(); ok {
		go s.finish() // ends by itself
	}
}

// drained returns the error of a call that the Drain of the peer has refused, when the session ends
// because of a before the peer's answer has come.
func drained(a *Abort) *Abort {
	return &Abort{Code: codec.Unavailable, Message: "the peer shut the session down before the call arrived", Remote: true, Ran: codec.Refused, Cause: a}
}

// lingerTime returns how long the Wire may stay open after the end of a session, for the last batch
// to leave and the peer to read why.
func lingerTime(a *Abort) time.Duration {
	if a.Code == codec.HardLimit {
		return 20 * time.Millisecond // by force: just enough for a peer that still reads
	}
	return time.Second
}

// LogValue implements slog.LogValuer.
func (s *Session) LogValue() slog.Value { return slog.StringValue(s.String()) }
