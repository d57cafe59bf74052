package asterisque

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/admission"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/resume"
	"github.com/asterisque-go/asterisque/wire"
)

// Node is the endpoint of a program: its name, the functions that it offers, and its sessions. It
// dials and listens any number of times, and the sessions of either kind are equal. A Node is safe
// for concurrent use. [NewNode] makes one; the methods of a zero Node return an error.
type Node struct {
	cfg     config // these are fixed
	invalid error  // error of cfg

	sharedState // these lock themselves
	admission   *admission.Control
	listeners   closers[wire.Listener]  // that are being served
	connections closers[nodeConnection] // that are not over
	handshakes  closers[*handshake.Handshake]
	relays      closers[*relayedSession]
	accepts     sync.WaitGroup // handshakes of Serve
	drain       nodeDrain

	mu       sync.Mutex            // may be held while reports are added, whose lock comes after it
	sessions map[*Session]struct{} // guarded by mu, as all below; nil once the node is closed
	past     Stats                 // sums over the sessions that have ended

	// of sessions, those that the peer may resume
	resumable map[SessionID]*Session
	// sessions that join resumable in a moment; closed then
	beginning map[SessionID]chan struct{}
}

// NewNode returns a Node. It never fails: [Node.Check] reports invalid options.
func NewNode(opts ...Option) *Node {
	n := &Node{
		sessions: make(map[*Session]struct{}), resumable: make(map[SessionID]*Session), beginning: make(map[SessionID]chan struct{}),
		drain: nodeDrain{begun: make(chan struct{})},
	}
	n.cfg, n.invalid = newConfig(opts)
	n.cfg.announce()
	n.cfg.begin(&n.sharedState)
	n.admission = admission.New(n.cfg.door())
	return n
}

// Check returns an error that names every invalid option, or nil. Every method that connects,
// listens or accepts returns the same error.
func (n *Node) Check() error {
	if n.isZero() {
		return errZeroNode
	}
	return n.invalid
}

// isZero reports whether the node was not made by NewNode.
func (n *Node) isZero() bool { return n == nil || n.admission == nil }

var errZeroNode error = aborts.NeverSent(codec.ErrUnavailable.Withf("the Node is nil or zero: make it with NewNode"))

// ready returns an error if the node cannot connect, listen or accept.
func (n *Node) ready() error {
	if err := n.Check(); err != nil {
		return err
	}
	if n.handshakes.IsClosed() {
		return handshake.ErrNodeClosed
	}
	return nil
}

// Dial connects to the node that listens at a URL such as "tcp://127.0.0.1:5330" and returns the
// session once the handshake is complete. start and the handshake timeout bound the operation;
// afterwards start has no effect on the session. Errors of the handshake are an *[Abort]:
// ErrHandshake or ErrUnauthorized. Errors of the transport are returned unchanged.
func (n *Node) Dial(start context.Context, url string) (*Session, error) {
	if err := n.ready(); err != nil {
		return nil, err
	}
	w, err := guard.Dial(start, n.cfg.log, url, n.cfg.tls)
	if err != nil {
		return nil, err
	}
	return n.Attach(start, w)
}

// Attach makes a session of a Wire that this side has connected, and takes ownership of the Wire:
// it is closed with the session, and also on error. The other side has to Accept. See Dial for
// start and errors.
func (n *Node) Attach(start context.Context, w wire.Wire) (*Session, error) {
	if err := n.Check(); err != nil {
		w.Close()
		return nil, err
	}
	h := n.newHandshake(w)
	h.Once = true
	var s *Session
	err := h.Guard(func() error {
		n.configure(h)
		if h.Place = admission.SlotOf(w); h.Place != nil {
			// the other side has connected, and this one sends first
			if refused := h.Place.Carry(); refused != nil {
				return h.Refuse(refused)
			}
		}
		a, about, err := h.propose(start, nil)
		if err == nil {
			s, err = n.begin(h, sessionStart{agreed: a, about: about, grant: n.cfg.ownGrant(), dialled: true}, n)
		}
		return err
	})
	if s == nil && h.Place != nil {
		h.Place.Leave()
	}
	return s, err
}

// Accept makes a session of a Wire that the other side has connected, or returns the session that
// is resumed over the Wire: see [WithResume]. Like a Wire of Serve it needs a place (see
// [Admission].HalfOpen); without a place the error is ErrOverloaded. If the session continues at
// another node (Resume.Elsewhere) the error is ErrElsewhere, and the Wire belongs to the relay.
// Otherwise Accept is as Attach.
func (n *Node) Accept(start context.Context, w wire.Wire) (*Session, error) {
	return n.accept(start, w, false)
}

// AcceptRelayed is Accept for a Wire on which another node relays a peer that resumes a session of
// this node: see Resume.Elsewhere. It begins no new session: if there is no session to resume, peer
// and caller receive ErrUnavailable. The peer's address and identity are those of the Wire
// (RemoteAddr and [wire.Secure]), so the caller has to make sure that the other node is trusted.
func (n *Node) AcceptRelayed(start context.Context, w wire.Wire) (*Session, error) {
	return n.accept(start, w, true)
}

func (n *Node) accept(start context.Context, w wire.Wire, relayed bool) (*Session, error) {
	if err := n.Check(); err != nil {
		w.Close()
		return nil, err
	}
	h, refused := n.enter(w)
	if refused != nil {
		return nil, refused
	}
	h.Relayed = relayed
	return n.shake(start, h)
}

// enter returns the handshake over a Wire that the other side has connected, or the reason for its
// rejection. shake follows it.
func (n *Node) enter(w wire.Wire) (*nodeHandshake, *Abort) {
	h := n.newHandshake(w)
	refused := codec.ErrUnavailable.Withf("the wire panicked: the log says why")
	guard.Run(n.cfg.log, "wire", func() {
		n.configure(h)
		h.From = w.RemoteAddr()
		h.Place, refused = n.admission.Admit(w, h.From)
	})
	if refused != nil {
		go guard.Run(n.cfg.log, "wire", func() { handshake.TurnAway(w, refused) }) // ends by itself
		return h, aborts.NeverSent(refused)
	}
	return h, nil
}

// shake completes the handshake h and returns its session.
func (n *Node) shake(ctx context.Context, h *nodeHandshake) (s *Session, err error) {
	defer n.drain.shakes()()
	defer func() {
		if s == nil && err != ErrElsewhere { // otherwise the relay has the place
			h.Place.Leave()
		}
	}()
	err = h.Guard(func() error {
		a, err := n.respond(ctx, h)
		defer func() { n.begun(a.Session, s) }()
		switch s = a.resumed; {
		case err != nil || s != nil:
		case a.elsewhere != nil:
			err = n.relay(h, &a)
		default:
			s, err = n.begin(h, sessionStart{agreed: a.Agreement, about: a.about, grant: a.grant}, n)
		}
		return err
	})
	return s, err
}

// begin starts a session, unless the node has been closed meanwhile.
func (n *Node) begin(h *nodeHandshake, b sessionStart, holder sessionHolder) (*Session, error) {
	b.cfg, b.wire, b.place = &h.cfg.sessionConfig, h.Wire, h.WirePlace()
	b.values = h.cfg.valuesNamed(b.agreed.Codec)
	s := newSession(&n.sharedState, holder, &b)
	n.mu.Lock()
	closed := n.sessions == nil
	if !closed {
		n.sessions[s] = struct{}{}
		(*hookNotifier)(s).begun() // before any caller can find s
		if s.res != nil && !b.dialled {
			n.resumable[s.id] = s
		}
	}
	n.mu.Unlock()
	if closed {
		(*lifecycle)(s).endTelling()
		n.Owners.Release(s.owner())
		s.calls.Carrier.Discard()
		return nil, handshake.ErrNodeClosed
	}
	(*lifecycle)(s).watchCertificate()
	n.cfg.log.Info("session begins", "session", s, "peer", s.peerID, "addr", b.about.RemoteAddr)
	s.calls.Carrier.Run()
	if !b.dialled && n.drain.hasBegun() {
		s.calls.AnnounceEnd(carrier.Now) // Shutdown may not find it any more
	}
	return s, nil
}

// errAnywhere is the error for a peer if another node may have its session. The peer retries.
var errAnywhere = codec.ErrUnavailable.Withf("it could not be found out which node has the session")

// expect records that the peer is about to receive the id of a session. The peer may lose the Wire
// at once, and reconnect to another node, so the record of the session is stored before. The
// session begins before begun is called, or never.
func (n *Node) expect(ctx context.Context, a *acceptedPeer) {
	n.mu.Lock()
	n.beginning[a.Session] = make(chan struct{})
	n.mu.Unlock()
	var e resume.Ticket
	e.Init(a.Session, a.Secret, a.about.identity(), &n.records)
	e.Store(ctx, time.Time{})
}

// begun is called when an expected session has begun, or with nil if it will not begin.
func (n *Node) begun(id SessionID, s *Session) {
	n.mu.Lock()
	c := n.beginning[id]
	delete(n.beginning, id)
	n.mu.Unlock()
	if c == nil {
		return
	}
	close(c)
	if s == nil {
		n.records.Remove(id)
	}
}

// sessionChanged implements sessionHolder.
func (n *Node) sessionChanged() {}

// sessionEnded implements sessionHolder.
func (n *Node) sessionEnded(s *Session) {
	var past Stats // one per session: the reader has a small stack
	past.load(s)
	past.end()
	n.mu.Lock()
	n.past.add(&past)
	delete(n.sessions, s)
	delete(n.resumable, s.id)
	n.mu.Unlock()
}

// Logger returns the logger of the node, for its transports and handlers: the logger of
// [WithLogger], bounded. It passes 10 records of one level and text in a second. The first record
// after suppressed ones has their number in the attribute more. Texts, and errors in attributes,
// are cut after 1,024 bytes. The logger does not panic, even if the handler below it does.
func (n *Node) Logger() *slog.Logger { return n.cfg.log }

// ID returns the name set by [WithID], or "".
func (n *Node) ID() string { return n.cfg.id }

// Sessions returns the sessions that have not ended.
func (n *Node) Sessions() []*Session {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]*Session, 0, len(n.sessions))
	for s := range n.sessions {
		list = append(list, s)
	}
	return list
}

// closeDoors ends listeners, handshakes and relays.
func (n *Node) closeDoors() {
	n.drain.begin()
	for _, h := range n.handshakes.close() {
		h.Stop()
	}
	for _, ln := range n.listeners.close() {
		guard.CloseListener(n.cfg.log, ln)
	}
	endRelays(n.relays.close())
}

// Close stops listening and closes all sessions; see [Session.Close]. The node cannot be used
// afterwards. Repeated calls return nil. Handlers and callbacks may call Close: it waits for none
// of them but Delete of a [Repository].
func (n *Node) Close() error {
	if n.isZero() {
		return errZeroNode
	}
	n.closeDoors()
	n.mu.Lock()
	sessions := n.sessions
	n.sessions = nil
	n.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range n.connections.close() {
		wg.Go(func() { c.closeFor(handshake.ErrNodeClosed) })
	}
	for s := range sessions {
		wg.Go(func() { s.Close() })
	}
	wg.Wait()
	n.accepts.Wait()
	n.keepalive.End()
	n.Durable.End()
	n.scheduler.End()
	return nil
}
