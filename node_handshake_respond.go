package asterisque

import (
	"context"
	"crypto/rand"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/resume"
	"github.com/asterisque-go/asterisque/wire"
)

// resumer is the interface of the node for handshakes.
type resumer interface {
	// former returns the session that a peer wants to resume, if the peer has its secret and its
	// identity, or the record that names another node as its owner. An error means that another
	// node may have the session.
	former(ctx context.Context, was *previousSession, p *Peer) (s *Session, elsewhere *SessionRecord, err error)

	// RejectSession returns the reason for which no session of a peer begins, or nil.
	refusesSession(p *Peer) error

	// expect records that the peer is about to receive the id of a session. The peer may lose the
	// Wire at once, and reconnect to another node, so the record of the session is stored before.
	expect(ctx context.Context, a *acceptedPeer)
}

// acceptedPeer is the result of a handshake on the accepting side.
type acceptedPeer struct {
	agreement
	grant   Grant
	resumed *Session // resumed session, which has taken the Wire; nil: a session is to begin

	elsewhere wire.Wire // to the node that has the session; nil: this node
	largest   int       // bytes of the largest frame that it accepts
}

var errNotHere = codec.ErrUnavailable.Withf("the session that was relayed here cannot be resumed, and no other one begins this way")

// respond is the handshake of the accepting side. It also obtains the grant for the peer. On error
// the agreement has the session's id if the session is expected.
func (h *handshake) respond(ctx context.Context, r resumer) (a acceptedPeer, err error) {
	ctx, done := h.begin(ctx, h.place.Deadline())
	defer done()
	if refused := h.place.TakeOver(h.cut); refused != nil {
		h.cut() // no write: a session may have the Wire
		return a, h.refuse(refused)
	}
	hello, err := h.receive()
	if err != nil {
		return a, h.failed(ctx, err)
	}
	was := formerOf(&hello)
	offered := hello.Codecs
	if a.agreement, err = answerTo(&hello, newSessionID(), h.cfg.values, h.peer(), h.resumes()); err != nil {
		return a, h.refuse(err)
	}
	found, err := h.find(ctx, r, &a, &was)
	switch {
	case err != nil:
		return a, h.refuse(err)
	case a.elsewhere != nil:
		return a, h.passOn(ctx, &a)
	}
	if err := h.authorised(ctx, &a, found, hello.Credential); err != nil {
		return a, h.refuse(err)
	}
	if found != nil && found.goesOnFor(&a.agreement, &a.grant, offered, was.received) {
		if over, err := h.goOn(ctx, found, &a, &was); over {
			return a, err
		}
	}
	if a.resume && was.session != (SessionID{}) {
		h.log.Info("session is not resumed", "session", was.session.short(), "addr", h.w.RemoteAddr(), "known", found != nil)
	}
	if h.relayed {
		return a, h.refuse(errNotHere)
	}
	return a, h.begins(ctx, r, &a, &hello)
}

// newSessionID returns a new random session id.
func newSessionID() []byte {
	id := make([]byte, message.SessionSize)
	rand.Read(id) // never fails
	return id
}

// goOn resumes s over the Wire, and reports whether that ends the handshake: otherwise a session is
// to begin.
func (h *handshake) goOn(ctx context.Context, s *Session, a *acceptedPeer, was *previousSession) (over bool, err error) {
	switch err := h.resume(ctx, s, a, was); {
	case err == nil:
		a.resumed = s
		return true, nil
	case h.now() != exchanging || ctx.Err() != nil:
		return true, h.failed(ctx, err)
	case err == error(resume.ErrTooOften):
		return true, h.refuse(err) // the peer may resume its session later
	}
	return false, nil
}

// find returns the session that the peer may resume, or nil. If another node has the session, find
// sets the Wire to that node.
func (h *handshake) find(ctx context.Context, r resumer, a *acceptedPeer, was *previousSession) (found *Session, err error) {
	if !a.resume {
		return nil, nil
	}
	switch err := h.exposed(); {
	case err != nil && h.relayed:
		return nil, errNotHere // not an error of the peer, whose own Wire may be private
	case err != nil:
		return nil, err
	}
	found, at, err := r.former(ctx, was, &a.about)
	if at != nil && !h.relayed {
		if a.elsewhere, err = h.cfg.reach(ctx, *at, a.about); a.elsewhere != nil {
			a.session = was.session
		}
	}
	return found, err
}

// authorised calls Access.Accept for the peer, which may resume the session found, if that is not
// nil, and sets the grant.
func (h *handshake) authorised(ctx context.Context, a *acceptedPeer, found *Session, credential []byte) (err error) {
	a.about.Credential = credential
	if a.grant, err = h.cfg.authorise(ctx, a.about); err != nil {
		if found != nil && !mayPass(err) {
			found.fail(codec.AbortOf(err)) // a rejected peer loses its session, too
		}
		return err
	}
	a.about.Credential, a.about.Subject = nil, a.grant.Subject
	return nil
}

// resume resumes s over the Wire.
func (h *handshake) resume(ctx context.Context, s *Session, a *acceptedPeer, was *previousSession) error {
	if refused := s.res.Wait(ctx); refused != nil {
		return refused
	}
	next := resume.NewSecret()
	reply := syncOf(h.cfg, s.res.plan, h.resumes())
	reply.Codecs, reply.Session, reply.Secret = []string{s.codec.Name()}, s.id[:], next[:]
	c := resumeRequest{wire: h.w, place: h.wirePlace(), about: a.about, grant: &a.grant, received: was.received, used: was.secret}
	c.confirm = func(received uint64) error {
		if refused := h.place.Carry(); refused != nil {
			return refused
		}
		s.res.Replace(was.secret, next)
		reply.Received = received
		return h.answer(frameOf(reply))
	}
	return s.comeBack(ctx, &c)
}

// begins answers a peer if a new session is to begin. hello is the agreement of both sides.
func (h *handshake) begins(ctx context.Context, r resumer, a *acceptedPeer, hello *message.Sync) error {
	if err := r.refusesSession(&a.about); err != nil {
		return h.refuse(err)
	}
	if refused := h.place.Carry(); refused != nil {
		return h.refuse(refused)
	}
	reply := syncOf(h.cfg, a.grant.plan, h.resumes())
	reply.Codecs = hello.Codecs
	reply.Session = hello.Session
	if a.resume {
		a.secret = resume.NewSecret()
		reply.Secret = a.secret[:]
		r.expect(ctx, a)
	}
	if err := h.answer(frameOf(reply)); err != nil {
		return h.failed(ctx, err)
	}
	return nil
}

// passOn forwards the peer's hello to the other node, and the answer to the peer.
func (h *handshake) passOn(ctx context.Context, a *acceptedPeer) (err error) {
	defer func() {
		if err != nil {
			guard.Apart(h.log, a.elsewhere, func() { a.elsewhere.Close() })
		}
	}()
	if refused := h.place.Carry(); refused != nil {
		return h.refuse(refused)
	}
	reply, err := h.consult(ctx, a.elsewhere)
	if err != nil {
		return h.refuse(codec.ErrUnavailable.Withf("the node that has the session cannot be reached: %v", err))
	}
	if m, err := message.ParseControl(reply); err == nil {
		if s, ok := m.(message.Sync); ok { // otherwise the node rejects the peer
			a.largest = syncSettingsOf(&s).maxFrame
		}
	}
	if err := h.answer(reply); err != nil {
		return h.failed(ctx, err)
	}
	return nil
}

// consult returns the answer of the other node to the peer's hello.
func (h *handshake) consult(ctx context.Context, other wire.Wire) (reply []byte, err error) {
	stop := context.AfterFunc(ctx, func() { guard.Run(h.log, "wire", func() { other.Close() }) })
	if err = other.WriteFrames([][]byte{h.hello}); err == nil {
		reply, err = other.ReadFrame(maxSync)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	return reply, err
}
