package asterisque

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

// Node is a program's endpoint: what it calls itself, the functions it offers, the sessions it
// holds. It dials and listens, as often as it likes, and the sessions of either kind are equal. It
// is safe for concurrent use. [NewNode] makes one; a zero Node says so wherever it is used.
type Node struct {
	cfg     config // these are fixed
	invalid error  // what is wrong with cfg

	shared      // these lock themselves
	admission   *admission
	listeners   kept[wire.Listener]  // that are being served
	connections kept[nodeConnection] // that are not over
	handshakes  kept[*handshake]
	relays      kept[*relaying]
	accepts     sync.WaitGroup // handshakes of Serve
	drain       nodeDrain

	mu       sync.Mutex            // may be held while reports are added, whose lock comes after it
	sessions map[*Session]struct{} // guarded by mu, as all below; nil once the node is closed
	past     Stats                 // sums over the sessions that have ended

	// of sessions, those that the peer may resume
	resumable map[SessionID]*Session
	// sessions that will be among them in a moment; closed then
	beginning map[SessionID]chan struct{}
}

// NewNode returns a Node. It never fails: of options whose values do not fit, [Node.Check] tells.
func NewNode(opts ...Option) *Node {
	n := &Node{
		sessions: make(map[*Session]struct{}), resumable: make(map[SessionID]*Session), beginning: make(map[SessionID]chan struct{}),
		drain: nodeDrain{begun: make(chan struct{})},
	}
	n.cfg, n.invalid = newConfig(opts)
	n.cfg.begin(&n.shared)
	n.admission = newAdmission(n.cfg.door())
	return n
}

// Check returns an error that names every option whose value does not fit, or nil. Every method
// that connects, listens or accepts returns the same error.
func (n *Node) Check() error {
	if n.isZero() {
		return errZeroNode
	}
	return n.invalid
}

// isZero reports whether NewNode has not made the node.
func (n *Node) isZero() bool { return n == nil || n.admission == nil }

var errZeroNode error = neverSent(codec.ErrUnavailable.Withf("the Node is nil or zero: make it with NewNode"))

// ready returns why the node does not connect, listen or accept.
func (n *Node) ready() error {
	if err := n.Check(); err != nil {
		return err
	}
	if n.handshakes.isClosed() {
		return errNodeClosed
	}
	return nil
}

// Dial connects to the node that listens at a URL such as "tcp://127.0.0.1:5330" and returns the
// session once the handshake is complete. start bounds that, beside the handshake timeout;
// afterwards it has no effect on the session. Errors of the handshake are *[Abort]: ErrHandshake,
// ErrUnauthorized; those of the transport are its own.
func (n *Node) Dial(start context.Context, url string) (*Session, error) {
	if err := n.ready(); err != nil {
		return nil, err
	}
	w, err := dialURL(start, n.cfg.log, url, n.cfg.tls)
	if err != nil {
		return nil, err
	}
	return n.Attach(start, w)
}

// Attach makes a session of a Wire that this side has connected, and takes the Wire over: it is
// closed with the session, and also on error. The other side has to Accept. See Dial for start and
// errors.
func (n *Node) Attach(start context.Context, w wire.Wire) (*Session, error) {
	if err := n.Check(); err != nil {
		w.Close()
		return nil, err
	}
	h := &handshake{w: w, open: &n.handshakes, log: n.cfg.log, once: true}
	var s *Session
	err := h.guarded(func() error {
		h.cfg = n.configFor(w)
		if h.place = placeAt(w); h.place != nil {
			// the other side has connected, and this one speaks first
			if refused := h.place.carry(); refused != nil {
				return h.refuse(refused)
			}
		}
		a, err := h.propose(start, nil)
		if err == nil {
			s, err = n.begin(h, a, n.ownGrant(), true, n)
		}
		return err
	})
	if s == nil && h.place != nil {
		h.place.Leave()
	}
	return s, err
}

// Accept makes a session of a Wire that the other side has connected, or returns the session that
// goes on over it: see [WithResume]. The Wire needs a place, as one of Serve does (see
// [Admission].HalfOpen); if there is none, the error is ErrOverloaded. If the session goes on at
// another node (Resume.Elsewhere) it is ErrElsewhere, and the Wire belongs to the relay. Otherwise
// it is as Attach.
func (n *Node) Accept(start context.Context, w wire.Wire) (*Session, error) {
	return n.accept(start, w, false)
}

// AcceptRelayed is Accept for a Wire on which another node relays a peer that wants to go on with a
// session of this one: see Resume.Elsewhere. It begins no session: if there is none to go on with,
// peer and caller get ErrUnavailable. What the Wire tells of the peer (RemoteAddr, and
// [wire.Secure], which proves who that is) is believed, so whoever makes it has to know that the
// other node is one to be believed.
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
	h.relayed = relayed
	return n.shake(start, h)
}

// enter returns the handshake over a Wire that the other side has connected, or why there is no
// place for it. It is followed by shake.
func (n *Node) enter(w wire.Wire) (*handshake, *Abort) {
	h := &handshake{w: w, open: &n.handshakes, log: n.cfg.log}
	refused := codec.ErrUnavailable.Withf("the wire panicked: the log says why")
	guard.Run(n.cfg.log, "wire", func() {
		h.cfg, h.from = n.configFor(w), w.RemoteAddr()
		h.place, refused = n.admission.admit(w, h.from)
	})
	if refused != nil {
		go guard.Run(n.cfg.log, "wire", func() { turnAway(w, refused) }) // ends by itself
		return h, neverSent(refused)
	}
	return h, nil
}

// turnAway closes a Wire for which there is no place. The peer is told if that needs no wait.
func turnAway(w wire.Wire, refused *Abort) {
	if t, ok := w.(wire.TryWriter); ok {
		frame := message.SessionClose{Code: refused.Code, Message: refused.Message}.AppendTo(make([]byte, 4, likelySync))
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
		t.TryWriteBatch(frame) // an error is that of a Wire which is given up anyway
	}
	w.Close()
}

// shake makes a session of what has entered.
func (n *Node) shake(ctx context.Context, h *handshake) (s *Session, err error) {
	defer n.drain.shakes()()
	defer func() {
		if s == nil && err != ErrElsewhere { // else the relay has the place
			h.place.Leave()
		}
	}()
	err = h.guarded(func() error {
		a, err := h.respond(ctx, n)
		defer func() { n.begun(a.session, s) }()
		switch s = a.resumed; {
		case err != nil || s != nil:
		case a.elsewhere != nil:
			err = n.relay(h, &a)
		default:
			s, err = n.begin(h, a.agreement, a.grant, false, n)
		}
		return err
	})
	return s, err
}

// configFor returns the configuration of a session over w.
func (n *Node) configFor(w wire.Wire) *config {
	if _, ok := w.(wire.Foreign); !ok {
		return &n.cfg
	}
	c := n.cfg
	c.windowless = true
	c.plan, _ = c.planFor(c.inbound) // without windows every one fits
	return &c
}

// ownGrant is what a peer gets that this side has dialled.
func (n *Node) ownGrant() (g Grant) {
	n.cfg.fillIn(&g) // which fits: NewNode has checked it
	return g
}

// begin starts a session, unless the node has been closed meanwhile.
func (n *Node) begin(h *handshake, a agreement, g Grant, dialled bool, holder sessionHolder) (*Session, error) {
	s := newSession(&n.shared, holder, &sessionStart{
		cfg: &h.cfg.sessionConfig, wire: h.w, place: h.wirePlace(), agreed: a, grant: g, dialled: dialled,
	})
	n.mu.Lock()
	closed := n.sessions == nil
	if !closed {
		n.sessions[s] = struct{}{}
		(*watched)(s).begun() // before anybody else finds it
		if s.res != nil && !dialled {
			n.resumable[s.id] = s
		}
	}
	n.mu.Unlock()
	if closed {
		(*upper)(s).endTelling()
		n.owners.release(s.owner)
		s.carrier.Discard()
		return nil, errNodeClosed
	}
	(*upper)(s).watchCertificate()
	n.cfg.log.Info("session begins", "session", s, "peer", s.peerID, "addr", a.about.RemoteAddr)
	s.carrier.Run()
	if !dialled && n.drain.hasBegun() {
		s.announceEnd() // Shutdown may not find it any more
	}
	return s, nil
}

// errAnywhere is what a peer is told whose session another node may have. It comes again.
var errAnywhere = codec.ErrUnavailable.Withf("it could not be found out which node has the session")

// relay carries frames between the peer of a handshake and the node that goes on with its session,
// until that ends, and gives the place back. The error is ErrElsewhere, or that of a node which is
// about to go.
func (n *Node) relay(h *handshake, a *accepted) error {
	r := newRelaying(h.cfg, h.w, a)
	n.mu.Lock()
	open := n.sessions != nil && n.relays.add(r)
	if open {
		n.accepts.Go(func() { // ends with either Wire, or by end
			defer h.place.Leave()
			defer n.relays.remove(r)
			r.run()
		})
	}
	n.mu.Unlock()
	if !open || n.drain.hasBegun() { // Shutdown may not have found it
		r.end()
	}
	if !open {
		return errNodeClosed
	}
	return ErrElsewhere
}

// expect implements resumer. The session begins before begun is called, or never will.
func (n *Node) expect(ctx context.Context, a *accepted) {
	n.mu.Lock()
	n.beginning[a.session] = make(chan struct{})
	n.mu.Unlock()
	e := entitlement{session: a.session, records: &n.records, identity: a.about.identity(), secret: a.secret}
	e.record(ctx, time.Time{})
}

// begun is called when a session that was expected has begun, or will not: then it is nil.
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
		n.records.remove(id)
	}
}

// sessionChanged implements sessionHolder.
func (n *Node) sessionChanged() {}

// sessionEnded implements sessionHolder.
func (n *Node) sessionEnded(s *Session) {
	var past Stats // of which there is one: the reader has a small stack
	past.load(s)
	past.end()
	n.mu.Lock()
	n.past.add(&past)
	delete(n.sessions, s)
	delete(n.resumable, s.id)
	n.mu.Unlock()
}

// Logger returns what the node logs with, for transports and handlers that belong to it: the logger
// of [WithLogger], bounded. Of records of one level and text it lets 10 through in a second; the
// first one after others were held back says in the attribute more how many. Texts, and errors in
// attributes, are cut after 1,024 bytes. It does not panic, even if the handler below does.
func (n *Node) Logger() *slog.Logger { return n.cfg.log }

// ID returns what [WithID] has named the node, or "".
func (n *Node) ID() string { return n.cfg.id }

// Sessions returns the sessions that are up.
func (n *Node) Sessions() []*Session {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]*Session, 0, len(n.sessions))
	for s := range n.sessions {
		list = append(list, s)
	}
	return list
}

// closeDoors ends all that is no session yet, or none of this node.
func (n *Node) closeDoors() {
	n.drain.begin()
	for _, h := range n.handshakes.close() {
		h.stop(nodeCloses)
	}
	for _, ln := range n.listeners.close() {
		closeListener(n.cfg.log, ln)
	}
	endRelays(n.relays.close())
}

// Close stops listening and closes all sessions; see [Session.Close]. The node cannot be used
// afterwards. Repeated calls return nil. Handlers and callbacks may call it: it waits for none of
// them, but Delete of a [Repository].
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
		wg.Go(func() { c.closeFor(errNodeClosed) })
	}
	for s := range sessions {
		wg.Go(func() { s.Close() })
	}
	wg.Wait()
	n.accepts.Wait()
	n.lookout.End()
	n.durable.end()
	n.workers.end()
	return nil
}
