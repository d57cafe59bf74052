// Package handshake exchanges the Syncs over a Wire that has no session yet, within a time, and
// derives the [Agreement] of both sides. The caller decides about the peer, begins the session or
// resumes one.
package handshake

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
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
	"github.com/asterisque-go/asterisque/internal/flow"
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

// Set is the set of the running handshakes of a node, which stops them when it is closed.
type Set interface {
	// Add adds h. It reports false if the set is closed.
	Add(h *Handshake) bool

	// Remove removes h.
	Remove(h *Handshake)

	// IsClosed reports whether the node is closed.
	IsClosed() bool
}

// Handshake exchanges Syncs over a Wire that has no session yet. Until its end, a peer costs one
// frame of at most 8 KiB. The side that has connected calls Propose. The other one calls Begin and
// Receive, decides about the peer, and calls Answer or Refuse. Only Stop, Cut and Drain may be
// called by another goroutine.
type Handshake struct {
	Wire   wire.Wire // these are fixed before the first method is called
	Set    Set
	Log    *slog.Logger
	Config *Config

	From  net.Addr        // the peer's; nil on the side that connected
	Once  bool            // this side will not reconnect to resume the session
	Place *admission.Slot // that of the Wire; nil on the side that connected, as a rule

	// another node relays the peer, which resumes a session
	Relayed bool

	hello  []byte          // the peer's first frame, until the next is read
	ctx    context.Context // bounds the handshake
	end    context.CancelFunc
	gaveUp chan struct{} // closed when giveUp has returned

	status             // locks itself
	writing sync.Mutex // held by the writer of the Wire
}

// Propose is the handshake of the connecting side, which sends first. If was is not nil, Propose
// asks to resume that session; the peer has agreed if the agreement has the same session.
// credential, unless it is nil, returns the credential for the peer. On error the Wire is closed.
// ctx and Config.Time bound the operation.
func (h *Handshake) Propose(ctx context.Context, was *Proof, credential func(context.Context) ([]byte, error)) (a Agreement, err error) {
	ctx, done := h.begin(ctx, time.Now().Add(h.Config.Time))
	defer done()
	if err := h.Exposed(); err != nil {
		h.Wire.Close()
		return a, aborts.NeverSent(err)
	}
	hello := h.Sync(h.Config.Plan)
	if credential != nil {
		if hello.Credential, err = credential(ctx); err != nil {
			return a, h.Refuse(err)
		}
	}
	if was != nil {
		hello.Session, hello.Secret, hello.Received = was.Session[:], was.Secret[:], was.Received
	}
	hello.Codecs = h.Config.Codecs
	if err := h.send(hello); err != nil {
		return a, h.Failed(err)
	}
	reply, err := h.read()
	if err != nil {
		return a, h.Failed(err)
	}
	if a, err = agreeOn(&reply, h.Config.Codecs, h.Resumes()); err != nil {
		return a, h.Refuse(err)
	}
	if !h.move(agrees) {
		return a, h.Failed(errTooLate)
	}
	return a, nil
}

// Hello is the proposal of a peer that has connected.
type Hello struct {
	Agreement           // with choices of this side, and a new session id
	Proof      Proof    // of the session that the peer wants to resume
	Codecs     []string // offered
	Credential []byte
}

// Begin bounds the handshake of the accepting side by ctx and the deadline of its place, until done
// is called. If either ends before, the Wire is closed, and the peer receives the reason.
func (h *Handshake) Begin(ctx context.Context) (_ context.Context, done func()) {
	return h.begin(ctx, h.Place.Deadline())
}

// Receive reads the proposal of the peer. On error, the peer is rejected.
func (h *Handshake) Receive() (hello Hello, err error) {
	if refused := h.Place.TakeOver(h.Cut); refused != nil {
		h.Cut() // no write: a session may have the Wire
		return hello, h.Refuse(refused)
	}
	s, err := h.read()
	if err != nil {
		return hello, h.Failed(err)
	}
	hello = Hello{Proof: proofOf(&s), Codecs: s.Codecs, Credential: s.Credential}
	id := make([]byte, message.SessionSize)
	rand.Read(id) // never fails
	if hello.Agreement, err = answerTo(&s, id, h.Config.Codecs, h.Resumes()); err != nil {
		return hello, h.Refuse(err)
	}
	return hello, nil
}

// Guard calls f, which does the handshake and its consequences: the Wire and the callbacks may be
// the application's. The Wire is closed if f does not return.
func (h *Handshake) Guard(f func() error) (err error) {
	ok := false
	defer func() {
		if !ok {
			guard.Apart(h.Log, h.Wire, func() { h.Wire.Close() })
		}
	}()
	ok = guard.Run(h.Log, "handshake", func() { err = f() })
	switch {
	case !ok:
		return aborts.NeverSent(codec.ErrUnavailable.Withf("the handshake panicked: the log says why"))
	case err != nil && h.Set.IsClosed():
		return ErrNodeClosed
	}
	return err
}

// begin bounds the time of the handshake until done is called. If the time or the node ends before
// that, the Wire is closed, and the peer receives the reason.
func (h *Handshake) begin(ctx context.Context, until time.Time) (_ context.Context, done func()) {
	h.ctx, h.end = wait.WithTimeout(ctx, time.Until(until), errTooSlow)
	h.gaveUp = make(chan struct{})
	stop := context.AfterFunc(h.ctx, h.giveUp)
	if !h.Set.Add(h) {
		h.stop(nodeCloses)
	}
	return h.ctx, func() {
		stop()
		h.Set.Remove(h)
		h.end()
	}
}

// Stop ends the handshake because the node is closed.
func (h *Handshake) Stop() { h.stop(nodeCloses) }

// Drain ends the handshake because the node shuts down, unless this side has answered: the peer may
// have made calls already.
func (h *Handshake) Drain() {
	if h.move(nodeDrains) {
		h.end()
	}
}

// Undecided reports whether neither side has ended or answered the handshake.
func (h *Handshake) Undecided() bool { return h.now() == exchanging && h.ctx.Err() == nil }

// stop ends the handshake early.
func (h *Handshake) stop(why event) {
	h.move(why)
	h.end()
}

// Cut ends the handshake because another connection needs its place.
func (h *Handshake) Cut() { h.stop(placeLost) }

// giveUp is called when the context of the handshake has ended.
func (h *Handshake) giveUp() {
	defer close(h.gaveUp)
	h.move(timeOver) // unless the handshake has ended for another reason
	s := h.now()
	switch {
	case s == agreed:
		return // the session owns the Wire
	case s != timedOut && s != abandoned, !h.writing.TryLock():
		// the place is needed, or the peer does not read and blocks the writer
		guard.Apart(h.Log, h.Wire, func() { h.Wire.Close() })
		return
	}
	defer h.writing.Unlock()
	defer guard.Apart(h.Log, h.Wire, func() { h.Wire.Close() })
	defer time.AfterFunc(h.Config.Time/4, func() { guard.Run(h.Log, "wire", func() { h.Wire.Close() }) }).Stop()
	bye := message.SessionClose{Code: codec.Expired, Message: aborts.OfContext(h.ctx).Message}
	if s == abandoned {
		bye = message.SessionClose{Code: ErrNodeClosed.Code, Message: ErrNodeClosed.Message}
	}
	guard.Run(h.Log, "wire", func() { h.Wire.WriteFrames([][]byte{bye.AppendTo(nil)}) })
}

// Exposed returns an error if this side is to resume sessions but the Wire is not private: a reader
// of the handshake would have the secret.
func (h *Handshake) Exposed() error {
	if !h.Resumes() || h.Config.PlainCredentials || wire.IsPrivate(h.Wire) {
		return nil
	}
	return Exposed(h.Wire.RemoteAddr())
}

// Resumes reports whether this side can resume the session. Peers of another protocol never can.
func (h *Handshake) Resumes() bool {
	_, foreign := h.Wire.(wire.Foreign)
	return h.Config.Resumes && !h.Once && !foreign
}

// WirePlace returns the place of the Wire, or nil.
func (h *Handshake) WirePlace() transport.Place {
	if h.Place == nil {
		return nil
	}
	return h.Place
}

// Sync returns the announcement of this side, with the grants of a plan, and without choices.
func (h *Handshake) Sync(p *flow.Plan) message.Sync { return h.Config.sync(p, h.Resumes()) }

func (h *Handshake) send(c message.Control) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	return h.Wire.WriteFrames([][]byte{frameOf(c)})
}

func frameOf(c message.Control) []byte { return c.AppendTo(make([]byte, 0, likelySync)) }

// Answer sends the Sync by which this side accepts the session.
func (h *Handshake) Answer(s message.Sync) error { return h.Forward(frameOf(s)) }

// Forward sends the answer, if the handshake has not expired. Once it has returned nil, expiry does
// not end the handshake.
func (h *Handshake) Forward(frame []byte) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	if !h.move(answers) {
		return errTooLate
	}
	if err := h.Wire.WriteFrames([][]byte{frame}); err != nil {
		return err
	}
	if !h.move(agrees) {
		return errTooLate
	}
	return nil
}

// read reads the peer's Sync.
func (h *Handshake) read() (s message.Sync, err error) {
	frame, err := h.Wire.ReadFrame(maxSync)
	if err != nil {
		return s, err
	}
	m, err := message.ParseControl(frame)
	if err != nil {
		return s, h.Refuse(Transient(err, "the peer does not speak asterisque: %v", err))
	}
	switch c := m.(type) {
	case message.Sync:
		h.hello = frame
		c.Node, c.Session, c.Credential, c.Secret = bytes.Clone(c.Node), bytes.Clone(c.Session), bytes.Clone(c.Credential), bytes.Clone(c.Secret)
		return c, nil
	case message.SessionClose:
		return s, &codec.Abort{Code: c.Code, Message: c.Message, Remote: true, Ran: codec.NeverSent}
	}
	return s, h.Refuse(Transient(nil, "the peer's first message is not a Sync"))
}

// Refuse sends the reason for the rejection to the peer, and returns it.
func (h *Handshake) Refuse(err error) error {
	if h.ctx.Err() != nil {
		<-h.gaveUp // giveUp has notified the peer, or closed the Wire
	}
	h.move(rejects)
	a := codec.AbortOf(err)
	switch h.now() {
	case displaced:
		h.Wire.Close()
		return aborts.NeverSent(admission.ErrLost)
	case abandoned:
		a = ErrNodeClosed
	}
	// giveUp bounds the time; a write error does not matter, as the Wire is closed anyway
	h.send(message.SessionClose{Code: a.Code, Message: truncate.Text(a.Message, minFrame-outbox.HeadSize)})
	h.Wire.Close()
	return aborts.NeverSent(a)
}

// Consult returns the answer of another node, which has the session, to the peer's hello, and the
// settings in that answer, which are zero if the node rejects the peer.
func (h *Handshake) Consult(other wire.Wire) (reply []byte, s Settings, err error) {
	stop := context.AfterFunc(h.ctx, func() { guard.Run(h.Log, "wire", func() { other.Close() }) })
	if err = other.WriteFrames([][]byte{h.hello}); err == nil {
		reply, err = other.ReadFrame(maxSync)
	}
	if !stop() {
		err = context.Cause(h.ctx)
	}
	if m, parsed := message.ParseControl(reply); err == nil && parsed == nil {
		if sync, ok := m.(message.Sync); ok {
			s = SettingsOf(&sync)
		}
	}
	return reply, s, err
}

// silence returns the likely reason why a connected peer has sent nothing.
func (h *Handshake) silence() string {
	if h.From == nil || h.hello != nil {
		return ""
	}
	return "; it sent nothing, as a side does that accepts, and one of the two has to dial (Dial, Attach)"
}

// Failed closes the Wire of a handshake that ended in reading or writing, by err, and returns the
// error for the application.
func (h *Handshake) Failed(err error) error {
	h.move(rejects)
	a := new(codec.Abort)
	switch {
	case h.now() == displaced:
		a = admission.ErrLost
	case errors.As(err, &a):
	case context.Cause(h.ctx) == errTooSlow:
		a = Transient(err, "the peer %v did not complete the handshake within %v%s", h.Wire.RemoteAddr(), h.Config.Time, h.silence())
	case h.ctx.Err() != nil:
		a = aborts.OfContext(h.ctx)
	case errors.Is(err, wire.ErrFrameTooLarge):
		return h.Refuse(Transient(err, "the peer does not speak asterisque, protocol 1 (a classic one needs a classic:// URL, a web client ws://): %v", err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		a = Transient(err, "the peer closed the wire before the handshake was complete%s", beyondEOF(err))
	default:
		a = Transient(err, "the wire failed: %v", err)
	}
	h.writing.Lock() // giveUp may still be writing to the peer
	defer h.writing.Unlock()
	h.Wire.Close()
	return aborts.NeverSent(a)
}

// TurnAway closes a Wire that was rejected. It sends the reason if that does not block.
func TurnAway(w wire.Wire, refused *codec.Abort) {
	if t, ok := w.(wire.TryWriter); ok {
		frame := message.SessionClose{Code: refused.Code, Message: refused.Message}.AppendTo(make([]byte, 4, likelySync))
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
		t.TryWriteBatch(frame) // an error does not matter: the Wire is closed anyway
	}
	w.Close()
}
