package asterisque

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/admission"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/truncate"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// maxSync is the largest frame, in bytes, that is read before the peer has proved to use the
// protocol.
const maxSync = 8 << 10

// likelySync is the size, in bytes, of most Syncs; the buffer grows for larger ones.
const likelySync = 192

// handshake exchanges Syncs over a Wire that has no session yet. Until its end, a peer costs one
// frame of at most maxSync bytes.
type handshake struct {
	w    wire.Wire // these are fixed
	cfg  *config
	open *closers[*handshake] // handshakes of the node, which stops them when it is closed
	log  *slog.Logger

	from  net.Addr        // the peer's; nil on the side that connected
	once  bool            // this side will not reconnect to resume the session
	place *admission.Slot // that of w; nil on the side that connected, as a rule

	relayed bool   // another node relays the peer, which resumes a session
	hello   []byte // the peer's first frame, until the next is read

	ctx    context.Context // bounds the handshake
	end    context.CancelFunc
	gaveUp chan struct{} // closed when giveUp has returned

	handshakeStatus            // locks itself
	writing         sync.Mutex // held by the writer of w
}

// propose is the handshake of the connecting side, which sends first. If was is not nil, propose
// asks to resume that session; the peer has agreed if the agreement has the same session.
func (h *handshake) propose(ctx context.Context, was *previousSession) (a agreement, err error) {
	ctx, done := h.begin(ctx, time.Now().Add(h.cfg.handshake))
	defer done()
	if err := h.exposed(); err != nil {
		h.w.Close()
		return a, aborts.NeverSent(err)
	}
	hello := syncOf(h.cfg, &h.cfg.plan, h.resumes())
	if h.cfg.credential != nil {
		if hello.Credential, err = h.cfg.credentialFor(ctx, h.peer()); err != nil {
			return a, h.refuse(err)
		}
	}
	if was != nil {
		hello.Session, hello.Secret, hello.Received = was.session[:], was.secret[:], was.received
	}
	hello.Codecs = codecNames(h.cfg.values)
	if err := h.send(hello); err != nil {
		return a, h.failed(ctx, err)
	}
	reply, err := h.receive()
	if err != nil {
		return a, h.failed(ctx, err)
	}
	if a, err = agreeOn(&reply, h.cfg.values, h.peer(), h.resumes()); err != nil {
		return a, h.refuse(err)
	}
	if !h.move(agrees) {
		return a, h.failed(ctx, errTooLate)
	}
	return a, nil
}

// guarded calls f, which does the handshake and its consequences: the Wire and the callbacks may be
// the application's. The Wire is closed unless f returns.
func (h *handshake) guarded(f func() error) (err error) {
	ok := false
	defer func() {
		if !ok {
			guard.Apart(h.log, h.w, func() { h.w.Close() })
		}
	}()
	ok = guard.Run(h.log, "handshake", func() { err = f() })
	switch {
	case !ok:
		return aborts.NeverSent(codec.ErrUnavailable.Withf("the handshake panicked: the log says why"))
	case err != nil && h.open.isClosed():
		return errNodeClosed
	}
	return err
}

// begin bounds the time of the handshake until done is called. If the time or the node ends before
// that, the Wire is closed, and the peer receives the reason.
func (h *handshake) begin(ctx context.Context, until time.Time) (_ context.Context, done func()) {
	h.ctx, h.end = wait.WithTimeout(ctx, time.Until(until), errTooSlow)
	h.gaveUp = make(chan struct{})
	stop := context.AfterFunc(h.ctx, h.giveUp)
	if !h.open.add(h) {
		h.stop(nodeCloses)
	}
	return h.ctx, func() {
		stop()
		h.open.remove(h)
		h.end()
	}
}

// stop ends the handshake early.
func (h *handshake) stop(why handshakeEvent) {
	h.move(why)
	h.end()
}

// cut ends the handshake because another connection needs its place.
func (h *handshake) cut() { h.stop(placeLost) }

// giveUp is called when the context of the handshake has ended.
func (h *handshake) giveUp() {
	defer close(h.gaveUp)
	h.move(timeOver) // unless the handshake has ended for another reason
	s := h.now()
	switch {
	case s == agreed:
		return // the session owns the Wire
	case s != timedOut && s != abandoned, !h.writing.TryLock():
		// the place is needed, or the peer does not read and blocks the writer
		guard.Apart(h.log, h.w, func() { h.w.Close() })
		return
	}
	defer h.writing.Unlock()
	defer guard.Apart(h.log, h.w, func() { h.w.Close() })
	defer time.AfterFunc(h.cfg.handshake/4, func() { guard.Run(h.log, "wire", func() { h.w.Close() }) }).Stop()
	bye := message.SessionClose{Code: codec.Expired, Message: aborts.OfContext(h.ctx).Message}
	if s == abandoned {
		bye = message.SessionClose{Code: errNodeClosed.Code, Message: errNodeClosed.Message}
	}
	guard.Run(h.log, "wire", func() { h.w.WriteFrames([][]byte{bye.AppendTo(nil)}) })
}

// exposed returns an error if this side is to resume sessions but the Wire is not private: a reader
// of the handshake would have the secret.
func (h *handshake) exposed() error {
	if !h.resumes() || h.cfg.plainCredentials || wire.IsPrivate(h.w) {
		return nil
	}
	return exposed(h.w.RemoteAddr())
}

// resumes reports whether this side can resume the session. Peers of another protocol never can.
func (h *handshake) resumes() bool {
	_, foreign := h.w.(wire.Foreign)
	return h.cfg.resumeFor > 0 && !h.once && !foreign
}

// peer returns the Wire's description of the other side.
func (h *handshake) peer() Peer {
	p := Peer{LocalAddr: h.w.LocalAddr(), RemoteAddr: h.w.RemoteAddr()}
	if secure, ok := h.w.(wire.Secure); ok {
		state := secure.ConnectionState()
		p.TLS = &state
	}
	return p
}

// wirePlace returns the place of the Wire, or nil.
func (h *handshake) wirePlace() transport.Place {
	if h.place == nil {
		return nil
	}
	return h.place
}

func (h *handshake) send(c message.Control) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	return h.w.WriteFrames([][]byte{frameOf(c)})
}

func frameOf(c message.Control) []byte { return c.AppendTo(make([]byte, 0, likelySync)) }

// answer sends the answer if the handshake has not expired. From then on, expiry does not end the
// handshake.
func (h *handshake) answer(frame []byte) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	if !h.move(answers) {
		return errTooLate
	}
	if err := h.w.WriteFrames([][]byte{frame}); err != nil {
		return err
	}
	if !h.move(agrees) {
		return errTooLate
	}
	return nil
}

// receive reads the peer's Sync.
func (h *handshake) receive() (s message.Sync, err error) {
	frame, err := h.w.ReadFrame(maxSync)
	if err != nil {
		return s, err
	}
	m, err := message.ParseControl(frame)
	if err != nil {
		return s, h.refuse(passing(err, "the peer does not speak asterisque: %v", err))
	}
	switch c := m.(type) {
	case message.Sync:
		h.hello = frame
		c.Node, c.Session, c.Credential, c.Secret = bytes.Clone(c.Node), bytes.Clone(c.Session), bytes.Clone(c.Credential), bytes.Clone(c.Secret)
		return c, nil
	case message.SessionClose:
		return s, &Abort{Code: c.Code, Message: c.Message, Remote: true, Ran: codec.NeverSent}
	}
	return s, h.refuse(passing(nil, "the peer's first message is not a Sync"))
}

// refuse sends the reason for the rejection to the peer, and returns it.
func (h *handshake) refuse(err error) error {
	if h.ctx.Err() != nil {
		<-h.gaveUp // giveUp has notified the peer, or closed the Wire
	}
	h.move(rejects)
	a := codec.AbortOf(err)
	switch h.now() {
	case displaced:
		h.w.Close()
		return aborts.NeverSent(admission.ErrLost)
	case abandoned:
		a = errNodeClosed
	}
	// giveUp bounds the time; a write error does not matter, as the Wire is closed anyway
	h.send(message.SessionClose{Code: a.Code, Message: truncate.Text(a.Message, minFrame-outbox.HeadSize)})
	h.w.Close()
	return aborts.NeverSent(a)
}

// silence returns the likely reason why a connected peer has sent nothing.
func (h *handshake) silence() string {
	if h.from == nil || h.hello != nil {
		return ""
	}
	return "; it sent nothing, as a side does that accepts, and one of the two has to dial (Dial, Attach)"
}

// failed returns the error of a handshake that ended in reading or writing.
func (h *handshake) failed(ctx context.Context, err error) error {
	h.move(rejects)
	a := new(Abort)
	switch {
	case h.now() == displaced:
		a = admission.ErrLost
	case errors.As(err, &a):
	case context.Cause(ctx) == errTooSlow:
		a = passing(err, "the peer %v did not complete the handshake within %v%s", h.w.RemoteAddr(), h.cfg.handshake, h.silence())
	case ctx.Err() != nil:
		a = aborts.OfContext(ctx)
	case errors.Is(err, wire.ErrFrameTooLarge):
		return h.refuse(passing(err, "the peer does not speak asterisque, protocol 1 (a classic one needs a classic:// URL, a web client ws://): %v", err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		a = passing(err, "the peer closed the wire before the handshake was complete%s", beyondEOF(err))
	default:
		a = passing(err, "the wire failed: %v", err)
	}
	h.writing.Lock() // giveUp may still be writing to the peer
	defer h.writing.Unlock()
	h.w.Close()
	return aborts.NeverSent(a)
}
