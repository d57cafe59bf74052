package asterisque

import (
	"context"
	"errors"
	"log/slog"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/resume"
	"github.com/asterisque-go/asterisque/wire"
)

// authorise calls Access.Accept for the peer.
func (c *config) authorise(ctx context.Context, p Peer) (g Grant, err error) {
	if len(p.Credential) > 0 && p.TLS == nil && !c.plainCredentials {
		return g, codec.ErrUnauthorized.Withf("a credential came over a wire without encryption: use tls://, or allow it with Access.PlainCredentials")
	}
	if c.accept != nil {
		granted, err := callback.Ask(ctx, &c.asks.accept, func() (*Grant, error) {
			granted, err := c.accept(ctx, p)
			return granted, c.refusal(&p, err)
		}, nil)
		if err != nil {
			return g, err
		}
		if granted != nil {
			g = *granted
		}
	}
	return g, c.fillIn(&g)
}

// refusal returns err, with which the application rejects the peer, as an Abort.
func (c *config) refusal(p *Peer, err error) error {
	var own *Abort
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own) && own != nil:
		return own
	}
	return unaccepted(c.log, p, err)
}

// unaccepted returns the error for a peer on which the application could not decide because of err.
func unaccepted(log *slog.Logger, p *Peer, err error) *Abort {
	id := call.NewErrorID()
	log.Warn("peer could not be checked", "id", id, "addr", p.RemoteAddr, "error", err)
	a := codec.ErrUnavailable.Withf("the peer could not be checked: internal error, id %s", id)
	a.Cause = err
	return a
}

// reach returns a Wire to the node that has the session of r, or nil if there is no such node.
func (c *config) reach(ctx context.Context, r SessionRecord, p Peer) (wire.Wire, error) {
	if c.elsewhere == nil {
		return nil, nil
	}
	w, err := callback.Ask(ctx, &c.asks.elsewhere, func() (wire.Wire, error) {
		return c.elsewhere(ctx, r, p)
	}, func(w wire.Wire) {
		if w != nil {
			w.Close()
		}
	})
	var told *Abort
	switch {
	case err == nil || errors.As(err, &told):
		return w, err
	}
	c.log.Warn("session cannot be relayed", "node", r.Node, "session", r.Session.short(), "addr", p.RemoteAddr, "error", err)
	told = codec.ErrUnavailable.Withf("the node that has the session cannot be reached")
	told.Cause = err
	return nil, told
}

// credentialFor returns the credential for a peer.
func (c *config) credentialFor(ctx context.Context, p Peer) ([]byte, error) {
	if p.TLS == nil && !c.plainCredentials {
		return nil, codec.ErrUnauthorized.Withf("the credential is not sent over a wire without encryption: use tls://, or allow it with Access.PlainCredentials")
	}
	shown, err := callback.Ask(ctx, &c.asks.credential, func() ([]byte, error) {
		return c.credential(ctx, p)
	}, nil)
	switch {
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrOverloaded), ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, &Abort{Code: codec.Unauthorized, Message: "there is no credential", Cause: err}
	case len(shown) > message.MaxCredential:
		return nil, codec.ErrUnauthorized.Withf("the credential of %d bytes exceeds the limit of %d", len(shown), message.MaxCredential)
	}
	return shown, nil
}

// nodeHandshake is a handshake of a node.
type nodeHandshake struct {
	handshake.Handshake
	cfg *config // of the session; fixed
}

// newHandshake returns a handshake over a Wire. A configure follows.
func (n *Node) newHandshake(w wire.Wire) *nodeHandshake {
	return &nodeHandshake{Handshake: handshake.Handshake{Wire: w, Set: &n.handshakes, Log: n.cfg.log}}
}

// configure sets the configuration for the Wire, which may be the application's.
func (n *Node) configure(h *nodeHandshake) {
	h.cfg = n.cfg.over(h.Wire)
	h.Config = &h.cfg.announced
}

// propose is the handshake of the connecting side. It also returns the peer.
func (h *nodeHandshake) propose(ctx context.Context, was *handshake.Proof) (a handshake.Agreement, about Peer, err error) {
	var credential func(context.Context) ([]byte, error)
	if h.cfg.credential != nil {
		credential = func(ctx context.Context) ([]byte, error) { return h.cfg.credentialFor(ctx, peerOf(h.Wire)) }
	}
	if a, err = h.Propose(ctx, was, credential); err == nil {
		about = peerOf(h.Wire)
		about.ID = a.Node
	}
	return a, about, err
}

// acceptedPeer is the result of a handshake on the accepting side.
type acceptedPeer struct {
	handshake.Agreement
	about   Peer
	grant   Grant
	resumed *Session // resumed session, which has taken the Wire; nil: a session is to begin

	elsewhere wire.Wire // to the node that has the session; nil: this node
	largest   int       // bytes of the largest frame that it accepts
}

var errNotHere = codec.ErrUnavailable.Withf("the session that was relayed here cannot be resumed, and no other one begins this way")

// respond is the handshake of the accepting side. It also obtains the grant for the peer. On error
// the agreement has the session's id if the session is expected.
func (n *Node) respond(ctx context.Context, h *nodeHandshake) (a acceptedPeer, err error) {
	ctx, done := h.Begin(ctx)
	defer done()
	hello, err := h.Receive()
	if err != nil {
		return a, err
	}
	was := hello.Proof // apart, as the resume of a session keeps it
	a.Agreement, a.about = hello.Agreement, peerOf(h.Wire)
	a.about.ID = hello.Node
	found, err := n.find(ctx, h, &a, &was)
	switch {
	case err != nil:
		return a, h.Refuse(err)
	case a.elsewhere != nil:
		return a, h.passOn(&a)
	}
	if err := h.authorise(ctx, &a, found, hello.Credential); err != nil {
		return a, h.Refuse(err)
	}
	if found != nil && found.goesOnFor(&a.Agreement, &a.grant, hello.Codecs, was.Received) {
		if over, err := h.goOn(ctx, found, &a, &was); over {
			return a, err
		}
	}
	if id := SessionID(was.Session); a.Resume && id != (SessionID{}) {
		n.cfg.log.Info("session is not resumed", "session", id.short(), "addr", h.Wire.RemoteAddr(), "known", found != nil)
	}
	if h.Relayed {
		return a, h.Refuse(errNotHere)
	}
	return a, n.promiseSession(ctx, h, &a)
}

// find returns the session that the peer may resume, or nil. If another node has the session, find
// sets the Wire to that node.
func (n *Node) find(ctx context.Context, h *nodeHandshake, a *acceptedPeer, was *handshake.Proof) (found *Session, err error) {
	if !a.Resume {
		return nil, nil
	}
	switch err := h.Exposed(); {
	case err != nil && h.Relayed:
		return nil, errNotHere // not an error of the peer, whose own Wire may be private
	case err != nil:
		return nil, err
	}
	found, at, err := n.former(ctx, was, &a.about)
	if at != nil && !h.Relayed {
		if a.elsewhere, err = h.cfg.reach(ctx, *at, a.about); a.elsewhere != nil {
			a.Session = was.Session
		}
	}
	return found, err
}

// authorise calls Access.Accept for the peer, which may resume the session found, if that is not
// nil, and sets the grant.
func (h *nodeHandshake) authorise(ctx context.Context, a *acceptedPeer, found *Session, credential []byte) (err error) {
	a.about.Credential = credential
	if a.grant, err = h.cfg.authorise(ctx, a.about); err != nil {
		if found != nil && !mayPass(err) {
			found.calls.Fail(codec.AbortOf(err)) // a rejected peer loses its session, too
		}
		return err
	}
	a.about.Credential, a.about.Subject = nil, a.grant.Subject
	return nil
}

// mayPass reports whether err is temporary: the application may accept the peer later.
func mayPass(err error) bool {
	switch codec.AbortOf(err).Code {
	case codec.Unavailable, codec.Overloaded, codec.Expired, codec.Canceled:
		return true
	}
	return false
}

// goOn resumes s over the Wire, and reports whether that ends the handshake: otherwise a session is
// to begin.
func (h *nodeHandshake) goOn(ctx context.Context, s *Session, a *acceptedPeer, was *handshake.Proof) (over bool, err error) {
	switch err := h.resume(ctx, s, a, was); {
	case err == nil:
		a.resumed = s
		return true, nil
	case !h.Undecided():
		return true, h.Failed(err)
	case err == error(resume.ErrTooOften):
		return true, h.Refuse(err) // the peer may resume its session later
	}
	return false, nil
}

// resume resumes s over the Wire.
func (h *nodeHandshake) resume(ctx context.Context, s *Session, a *acceptedPeer, was *handshake.Proof) error {
	if refused := s.res.Wait(ctx); refused != nil {
		return refused
	}
	next := resume.NewSecret()
	reply := h.Sync(s.res.plan)
	reply.Codecs, reply.Session, reply.Secret = []string{s.calls.Coder.Values.Name()}, s.id[:], next[:]
	c := resumeRequest{wire: h.Wire, place: h.WirePlace(), about: a.about, grant: &a.grant, received: was.Received, used: was.Secret}
	c.confirm = func(received uint64) error {
		if refused := h.Place.Carry(); refused != nil {
			return refused
		}
		s.res.Replace(was.Secret, next)
		reply.Received = received
		return h.Answer(reply)
	}
	return s.comeBack(ctx, &c)
}

// promiseSession answers a peer if a new session is to begin.
func (n *Node) promiseSession(ctx context.Context, h *nodeHandshake, a *acceptedPeer) error {
	if err := n.rejectSession(&a.about); err != nil {
		return h.Refuse(err)
	}
	if refused := h.Place.Carry(); refused != nil {
		return h.Refuse(refused)
	}
	reply := h.Sync(a.grant.plan)
	reply.Codecs, reply.Session = []string{a.Codec}, a.Session[:]
	if a.Resume {
		a.Secret = resume.NewSecret()
		reply.Secret = a.Secret[:]
		n.expect(ctx, a)
	}
	if err := h.Answer(reply); err != nil {
		return h.Failed(err)
	}
	return nil
}

// passOn forwards the peer's hello to the other node, and the answer to the peer.
func (h *nodeHandshake) passOn(a *acceptedPeer) (err error) {
	defer func() {
		if err != nil {
			guard.Apart(h.Log, a.elsewhere, func() { a.elsewhere.Close() })
		}
	}()
	if refused := h.Place.Carry(); refused != nil {
		return h.Refuse(refused)
	}
	reply, settings, err := h.Consult(a.elsewhere)
	if err != nil {
		return h.Refuse(codec.ErrUnavailable.Withf("the node that has the session cannot be reached: %v", err))
	}
	a.largest = settings.MaxFrame
	if err := h.Forward(reply); err != nil {
		return h.Failed(err)
	}
	return nil
}

// rejectSession returns the error by which a session of a peer is rejected, or nil. Shutdown waits
// for handshakes that are not rejected here.
func (n *Node) rejectSession(p *Peer) error {
	if n.drain.hasBegun() {
		return handshake.ErrNodeClosed
	}
	return n.Owners.RejectSession(p.quotaName())
}

// relay carries frames between the peer of a handshake and the node that resumes its session, until
// that ends, and then releases the place. The error is ErrElsewhere, or that of a node that is
// closed.
func (n *Node) relay(h *nodeHandshake, a *acceptedPeer) error {
	r := newRelaying(h.cfg, h.Wire, a)
	n.mu.Lock()
	open := n.sessions != nil && n.relays.Add(r)
	if open {
		n.accepts.Go(func() { // ends with either Wire, or by end
			defer h.Place.Leave()
			defer n.relays.Remove(r)
			r.run()
		})
	}
	n.mu.Unlock()
	if !open || n.drain.hasBegun() { // Shutdown may not have found it
		r.end()
	}
	if !open {
		return handshake.ErrNodeClosed
	}
	return ErrElsewhere
}
