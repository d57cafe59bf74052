package asterisque

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
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
	"github.com/asterisque-go/asterisque/wire"
)

// maxSync is the largest frame, in bytes, that is read before the peer has shown that it speaks the
// protocol.
const maxSync = 8 << 10

// likelySync is the size, in bytes, that most Syncs fit in; for others the buffer grows.
const likelySync = 192

// minFrame is the least that a peer must accept, in bytes of a frame.
const minFrame = 1 << 10

// former is what the connecting side shows of a session that it wants to resume.
type former struct {
	session  [message.SessionSize]byte
	secret   [message.SecretSize]byte
	received uint64 // countable frames that have arrived here
}

// handshake exchanges Syncs over a Wire that nothing else uses yet. Until it is done, a peer costs
// one frame of at most maxSync bytes.
type handshake struct {
	w   wire.Wire
	cfg *config

	from  net.Addr // the peer's; nil on the side that connected
	once  bool     // nobody will connect again to resume the session
	place *entry   // that of w; nil on the side that connected, as a rule

	ctx  context.Context // bounds it
	end  context.CancelFunc
	lost atomic.Bool // the place is

	mu       sync.Mutex // held by who writes w
	answered bool       // the peer has its answer; guarded by mu
}

// dial is the handshake of the side that connected: it speaks first. If was is not nil, that is to
// be resumed; it is, if the session of the agreement is the same.
func (h *handshake) dial(ctx context.Context, was *former) (a agreement, err error) {
	h.begin(ctx, time.Now().Add(h.cfg.handshake))
	ctx = h.ctx
	defer h.watch()()
	if err := h.exposed(); err != nil {
		h.w.Close()
		return a, neverSent(err)
	}
	hello := h.hello(&h.cfg.plan)
	if hello.Credential, err = h.credential(ctx); err != nil {
		return a, h.refuse(err)
	}
	if was != nil {
		hello.Session, hello.Secret, hello.Received = was.session[:], was.secret[:], was.received
	}
	for _, v := range h.cfg.codecs {
		hello.Codecs = append(hello.Codecs, v.Name())
	}
	if err := h.send(hello); err != nil {
		return a, h.failed(ctx, err)
	}
	reply, err := h.receive()
	if err != nil {
		return a, h.failed(ctx, err)
	}
	if a, err = h.agree(reply); err != nil {
		return a, h.refuse(err)
	}
	return a, nil
}

// accept is the handshake of the side that was connected to. It also decides what is offered to the
// peer. If the peer wants to resume a session, and may, that is returned, with the Wire taken over
// by it.
func (h *handshake) accept(ctx context.Context, n *Node) (a agreement, g Grant, resumed *Session, err error) {
	h.begin(ctx, h.place.expires)
	ctx = h.ctx
	if refused := h.place.takeOver(h.cut); refused != nil {
		h.cut() // nothing is written: a session may have the Wire
		return a, g, nil, h.refuse(refused)
	}
	defer h.watch()()
	hello, err := h.receive()
	if err != nil {
		return a, g, nil, h.failed(ctx, err)
	}
	was := former{received: hello.Received}
	copy(was.session[:], hello.Session)
	copy(was.secret[:], hello.Secret)
	chosen := h.choose(hello.Codecs)
	if chosen == nil {
		return a, g, nil, h.refuse(codec.ErrHandshake.Withf("no common value codec: the peer offers %s, this side %s", strings.Join(hello.Codecs, ", "), codecNames(h.cfg.codecs)))
	}
	offered := hello.Codecs
	hello.Version = min(hello.Version, message.Version) // the lower one is spoken
	hello.Codecs = []string{chosen.codec.Name()}
	hello.Session = make([]byte, message.SessionSize)
	rand.Read(hello.Session) // never fails
	if a, err = h.agree(hello); err != nil {
		return a, g, nil, h.refuse(err)
	}
	if a.resume {
		if err := h.exposed(); err != nil {
			return a, g, nil, h.refuse(err)
		}
		resumed = n.former(ctx, &was, &a.about)
	}
	a.about.Credential = hello.Credential
	if g, err = h.authorise(ctx, a.about); err != nil {
		if resumed != nil && !mayPass(err) {
			resumed.fail(codec.AbortOf(err)) // who is not let in any more has no session either
		}
		return a, g, nil, h.refuse(err)
	}
	a.about.Credential, a.about.Subject = nil, g.Subject
	if resumed != nil && resumed.goesOnFor(&a, &g, offered, was.received) {
		answered, err := h.resume(ctx, resumed, &a, &g, &was)
		if err == nil {
			return a, g, resumed, nil
		}
		if answered || ctx.Err() != nil {
			return a, g, nil, h.failed(ctx, err)
		}
		if err == error(errResumedOften) {
			return a, g, nil, h.refuse(err) // it may come back to its session later
		}
	}
	if a.resume && was.session != ([message.SessionSize]byte{}) {
		h.cfg.log.Info("session is not resumed", "session", hex.EncodeToString(was.session[:4]), "addr", h.w.RemoteAddr(), "known", resumed != nil)
	}
	if err := n.budget.refusesSession(&a.about); err != nil {
		return a, g, nil, h.refuse(err)
	}
	if refused := h.place.carry(); refused != nil {
		return a, g, nil, h.refuse(refused)
	}
	reply := h.hello(g.plan)
	reply.Codecs = hello.Codecs
	reply.Session = hello.Session
	if a.resume {
		a.secret = newSecret()
		reply.Secret = a.secret[:]
		n.expect(a.session)
	}
	if err := h.reply(reply); err != nil {
		// with the agreement: the session is no longer expected
		return a, g, nil, h.failed(ctx, err)
	}
	return a, g, nil, nil
}

// resume lets s go on over the Wire. It reports whether the peer may have been told so.
func (h *handshake) resume(ctx context.Context, s *Session, a *agreement, g *Grant, was *former) (answered bool, err error) {
	if refused := s.res.pace(ctx); refused != nil {
		return false, refused
	}
	next := newSecret()
	reply := h.hello(s.res.plan)
	reply.Codecs, reply.Session, reply.Secret = []string{s.codec.Name()}, s.id[:], next[:]
	c := comeback{wire: h.w, place: h.place, about: a.about, grant: g, received: was.received, used: was.secret}
	c.confirm = func(received uint64) error {
		s.res.replace(was.secret, next)
		reply.Received, answered = received, true
		return h.reply(reply)
	}
	err = s.comeBack(ctx, &c)
	return answered, err
}

// mayPass reports whether the application may let in later whom it has not let in because of err.
func mayPass(err error) bool {
	switch codec.AbortOf(err).Code {
	case codec.Unavailable, codec.Overloaded, codec.Expired, codec.Canceled:
		return true
	}
	return false
}

// begin bounds the handshake in time. It is followed by watch, or by end.
func (h *handshake) begin(ctx context.Context, until time.Time) {
	h.ctx, h.end = context.WithDeadlineCause(ctx, until, errTooSlow)
}

// watch closes the Wire, and tells the peer why, when the time for the handshake ends before done
// is called.
func (h *handshake) watch() (done func()) {
	stop := context.AfterFunc(h.ctx, h.giveUp)
	return func() { stop(); h.end() }
}

// giveUp is called when the time for the handshake has ended.
func (h *handshake) giveUp() {
	if h.lost.Load() || !h.mu.TryLock() {
		// others need the place, or the handshake is stuck in writing: the peer does not read
		guard.Apart(h.cfg.log, h.w, func() { h.w.Close() })
		return
	}
	defer h.mu.Unlock()
	if h.answered {
		return // the Wire is that of the session
	}
	defer guard.Apart(h.cfg.log, h.w, func() { h.w.Close() })
	defer time.AfterFunc(h.cfg.handshake/4, func() { guard.Run(h.cfg.log, "wire", func() { h.w.Close() }) }).Stop()
	bye := message.SessionClose{Code: codec.Expired, Message: contextError(h.ctx).Message}
	if context.Cause(h.ctx) == error(errNodeClosed) {
		bye = message.SessionClose{Code: errNodeClosed.Code, Message: errNodeClosed.Message}
	}
	guard.Run(h.cfg.log, "wire", func() { h.w.WriteFrames([][]byte{bye.AppendTo(nil)}) })
}

// cut ends the handshake because others need its place.
func (h *handshake) cut() {
	h.lost.Store(true)
	h.end()
}

var errTooSlow = errors.New("the handshake was not completed in time")

// exposed returns why this side can resume no session over the Wire although it is to: somebody
// else who reads the handshake would have the secret.
func (h *handshake) exposed() error {
	if !h.resumes() || h.cfg.plainCredentials || wire.IsPrivate(h.w) {
		return nil
	}
	return exposed(h.w.RemoteAddr())
}

func exposed(at any) *Abort {
	return codec.ErrUnauthorized.Withf("WithResume: what crosses %v is not encrypted, and whoever reads it could take sessions over: use tls://, or allow it with Access.PlainCredentials", at)
}

func (h *handshake) send(c message.Control) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sendLocked(c)
}

func (h *handshake) sendLocked(c message.Control) error {
	return h.w.WriteFrames([][]byte{c.AppendTo(make([]byte, 0, likelySync))})
}

// reply sends the answer, in time: after that the handshake does not end any more because its time
// is over.
func (h *handshake) reply(c message.Sync) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.sendLocked(c)
	h.answered = err == nil
	return err
}

// receive reads the peer's Sync.
func (h *handshake) receive() (s message.Sync, err error) {
	frame, err := h.w.ReadFrame(maxSync)
	if err != nil {
		return s, err
	}
	m, err := message.ParseControl(frame)
	if err != nil {
		return s, h.refuse(codec.ErrHandshake.Withf("the peer does not speak asterisque: %v", err))
	}
	switch c := m.(type) {
	case message.Sync:
		c.Node, c.Session, c.Credential, c.Secret = bytes.Clone(c.Node), bytes.Clone(c.Session), bytes.Clone(c.Credential), bytes.Clone(c.Secret)
		return c, nil
	case message.SessionClose:
		return s, &Abort{Code: c.Code, Message: c.Message, Remote: true, Ran: codec.NeverSent}
	}
	return s, h.refuse(codec.ErrHandshake.Withf("the peer's first message is not a Sync"))
}

// refuse tells the peer why there will be no session, and returns it.
func (h *handshake) refuse(err error) error {
	if h.lost.Load() {
		h.w.Close()
		return neverSent(errPlaceLost)
	}
	a := codec.AbortOf(err)
	// limit bounds the time, and the error is that of a Wire which is given up anyway
	h.send(message.SessionClose{Code: a.Code, Message: cut.Text(a.Message, minFrame-outbox.HeadSize)})
	h.w.Close()
	return neverSent(a)
}

// failed returns the error of a handshake that reading or writing ended.
func (h *handshake) failed(ctx context.Context, err error) error {
	a := new(Abort)
	switch {
	case h.lost.Load():
		a = errPlaceLost
	case errors.As(err, &a):
	case context.Cause(ctx) == errTooSlow:
		a = passing(err, "the peer %v did not complete the handshake within %v", h.w.RemoteAddr(), h.cfg.handshake)
	case ctx.Err() != nil:
		a = contextError(ctx)
	case errors.Is(err, wire.ErrFrameTooLarge):
		return h.refuse(codec.ErrHandshake.Withf("the peer does not speak asterisque, protocol 1 (a classic one needs a classic:// URL, a web client ws://): %v", err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		a = passing(err, "the peer closed the wire before the handshake was complete%s", beyondEOF(err))
	default:
		a = passing(err, "the wire failed: %v", err)
	}
	h.mu.Lock() // the goroutine of limit may still be telling the peer
	defer h.mu.Unlock()
	h.w.Close()
	return neverSent(a)
}

// beyondEOF returns what err says beside that the wire has ended.
func beyondEOF(err error) string {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return ""
	}
	return ": " + err.Error()
}

// passing returns ErrHandshake for what may have been an accident, so that another attempt may
// succeed.
func passing(err error, format string, args ...any) *Abort {
	a := codec.ErrHandshake.Withf(format, args...)
	a.Cause = &passingError{a.Message, err}
	return a
}

type passingError struct {
	text string // that of the Abort, which says it once
	err  error
}

func (p *passingError) Error() string        { return p.text }
func (p *passingError) Unwrap() error        { return p.err }
func (p *passingError) Is(target error) bool { return target == errPassing }

var errPassing = errors.New("this may pass")
