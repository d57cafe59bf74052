package asterisque

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// A session that both sides agreed to resume outlives its Wire: it keeps what the peer has not
// acknowledged (package outbox), counts what has arrived, and when the Wire is lost it waits, away,
// for another one. What both sides lack is then sent again.
//
// Who reads owns that: it notices the loss, makes sure that nobody writes any more, and parks the
// session, which has no goroutine then. Whoever claims a parked session, to go on over another Wire
// or to end it, is its owner until another one reads. So nothing of an old Wire is read once
// another one is there.

const (
	// An Ack goes along with whatever is written. By itself it goes after so many frames, or after
	// ackDelay.
	ackFrames = 256
	ackBytes  = 256 << 10
	ackDelay  = 20 * time.Millisecond

	// leastKeptControls is how many bytes of Controls are kept at least for a peer that does not
	// acknowledge them. With more room there are more streams, and more of them.
	leastKeptControls = 1 << 20

	// A resume costs what is sent again, and so many bytes. Those of one session cost so many bytes
	// a second, and may be ahead of that for so long: 1,024 without anything to send again, one of
	// 64 MiB.
	resumeCost  = 64 << 10
	resumeRate  = 16 << 20
	resumeAhead = 4 * time.Second
)

// resumption is what a session has that can be resumed.
type resumption struct {
	agreed promises     // what the peer promised when the session began; these are fixed
	plan   *limits.Plan // what it was promised

	mu     sync.Mutex
	secret [message.SecretSize]byte // guarded by mu, as all below; entitles to the next resume
	// these do so, too, until the peer is known to have the latest one
	former  formerSecrets
	granted grantedLimits // by the last Grant
	parked  bool          // the session is away, and nobody's
	left    chan struct{} // closed when it is parked; nil while nobody waits
	until   time.Time     // when it is given up
	expiry  *time.Timer   // gives it up
	paced   time.Time     // until when what the resumes so far have cost is paid

	away *away // guarded by the lock of the node's aways

	// These belong to the reader.
	frames uint64 // countable ones since the last Ack of its own
	bytes  int
	timer  *time.Timer // sends an Ack; nil before the first time
}

// formerSecrets are those that a peer may have that has not got the latest one: the one that it has
// used, and the one that it was sent before, if it came back without that, or if two of its
// handshakes have overtaken each other. Zero ones entitle to nothing.
type formerSecrets [2][message.SecretSize]byte

// grantedLimits are the limits that a Grant has set.
type grantedLimits struct{ inbound, outbound limits.Limits }

// comeback is another Wire for a session that is away.
type comeback struct {
	wire     wire.Wire
	place    *entry // of the Wire; nil on the side that connected
	about    Peer   // what the handshake over it has told
	received uint64 // how many countable frames the peer has
	// what the peer gets from now on; nil on the side that connected
	grant *Grant
	used  [message.SecretSize]byte // the secret that the peer has shown; for confirm
	// tells the peer how many this side has; nil on the side that connected
	confirm func(received uint64) error
}

// resumable reports whether s goes on after a has ended its Wire.
func (s *Session) resumable(a *Abort) bool {
	return s.res != nil && s.ctx.Err() == nil && a.Code == codec.SessionClosed && !a.Remote
}

// Away reports whether the session has lost its Wire and waits for another one; see [WithResume].
func (s *Session) Away() bool { return s.away.Load() }

// lost ends the Wire because the peer does not answer. A session that cannot be resumed ends with
// it.
func (s *Session) lost(a *Abort) {
	if s.res == nil {
		s.fail(a)
	}
	s.closeWire()
}

// leave is called by the reader when the Wire is lost. It returns when nobody writes any more.
func (s *Session) leave(a *Abort) {
	s.closeWire()
	if !s.out.Halt() {
		select {
		case <-s.halted:
		case <-s.told: // the session has ended meanwhile
		}
	}
	s.away.Store(true)
	s.outbound.SetCongested(true)
	s.cfg.log.Info("session is away", "session", s, "cause", a)
	until := time.Now().Add(s.cfg.resumeFor)
	s.res.mu.Lock()
	s.res.until = until
	s.res.mu.Unlock()
	s.keepRecord(until)
	s.holder.sessionChanged()
}

// standBy lets the session wait for another Wire, without its owner. It reports false if it has
// ended.
func (s *Session) standBy() bool {
	s.shared.aways.add(s)
	r := s.res
	r.mu.Lock()
	if s.ctx.Err() != nil {
		r.mu.Unlock()
		s.shared.aways.remove(s)
		return false
	}
	r.parked = true
	r.expiry = time.AfterFunc(time.Until(r.until), func() {
		s.fail(codec.ErrUnavailable.Withf("the peer did not come back within %v", s.cfg.resumeFor))
	})
	if r.left != nil {
		close(r.left)
		r.left = nil
	}
	r.mu.Unlock()
	return true
}

// claim makes the caller the owner of a parked session. Otherwise it returns a channel that is
// closed when it is parked.
func (s *Session) claim() (ok bool, left <-chan struct{}) {
	r := s.res
	r.mu.Lock()
	if !r.parked {
		if r.left == nil {
			r.left = make(chan struct{})
		}
		left = r.left
		r.mu.Unlock()
		return false, left
	}
	r.parked = false
	r.expiry.Stop()
	r.mu.Unlock()
	s.shared.aways.remove(s)
	return true, nil
}

// goesOnFor reports whether a peer with the right secret and identity may resume the session: it is
// still the same to the application, it repeats what it has promised, and what it lacks is still
// there.
func (s *Session) goesOnFor(a *agreement, g *Grant, codecs []string, received uint64) bool {
	return g.Subject == s.owner.subject && a.promises == s.res.agreed && slices.Contains(codecs, s.codec.Name()) && s.out.Has(received)
}

// comeBack lets the session go on over another Wire, when it has lost its old one, which is closed.
// The caller has made all checks of the peer.
func (s *Session) comeBack(ctx context.Context, c *comeback) (err error) {
	for {
		if err := s.still(c); err != nil {
			return err
		}
		ok, left := s.claim()
		if ok {
			break
		}
		s.closeWire() // an old wire that comes back to life can do no harm
		select {
		case <-left:
		case <-ctx.Done():
			return contextError(ctx)
		case <-s.ctx.Done():
			return s.cause()
		}
	}
	err = errNotConfirmed
	defer func() { // also if the Wire panics, or ends the goroutine
		switch {
		case err == nil:
			go s.readAgain() // ends with the Wire
		case !s.standBy():
			go s.finish() // ends by itself
		}
	}()
	err = s.takeOver(c)
	return err
}

// still returns why the peer is not entitled any more, although it was when its handshake arrived:
// another one of it has overtaken that.
func (s *Session) still(c *comeback) error {
	if c.confirm != nil && !s.res.entitles(c.used) {
		return errOvertaken
	}
	return nil
}

var (
	errOvertaken    = codec.ErrUnavailable.Withf("the peer has come back over another wire")
	errNotConfirmed = codec.ErrUnavailable.Withf("the wire has not returned from writing")
)

// takeOver goes on over another Wire. The caller owns the session, and is the writer.
func (s *Session) takeOver(c *comeback) error {
	if err := s.still(c); err != nil {
		return err
	}
	missing, err := s.out.Resume(c.received)
	if err != nil {
		return err
	}
	cost := resumeCost
	for _, frames := range missing {
		cost += len(frames)
	}
	s.res.paces(cost)
	if err := s.confirm(c); err != nil {
		return err
	}
	s.setWire(c.wire, c.about.TLS)
	s.setPlace(c.place)
	s.endWithCertificate() // which may be another one now
	s.live.restart()
	s.pongs.before = 0 // over this Wire nothing has arrived
	s.away.Store(false)
	if c.grant != nil {
		s.renew(c.grant)
	}
	if c.confirm == nil {
		// by which the peer knows that this side has the next secret
		s.control(message.Ack{Count: s.got.Load()})
	}
	s.cfg.log.Info("session goes on", "session", s, "addr", c.about.RemoteAddr)
	s.writers.Go(func() { s.resend(missing) })
	return nil
}

// confirm tells the peer that the session goes on. Otherwise all is as it was, also if the Wire
// panics.
func (s *Session) confirm(c *comeback) (err error) {
	if c.confirm == nil {
		return nil
	}
	err = errNotConfirmed
	defer func() {
		if err != nil {
			s.out.Resent()
			s.out.Halt() // which is not claimed: the caller is still the writer
		}
	}()
	if refused := c.place.carry(); refused != nil {
		err = refused
		return err
	}
	err = c.confirm(s.got.Load())
	return err
}

// readAgain is read for a session that goes on. The peer has been told, and waits for no
// Repository.
func (s *Session) readAgain() {
	s.keepRecord(time.Time{})
	s.read()
}

// renew lets what the application has granted at a resume hold from now on. Nobody reads meanwhile.
func (s *Session) renew(g *Grant) {
	s.svc, s.highest = g.Service, *g.MaxPriority
	granted := g.limits()
	s.res.mu.Lock()
	same := granted == s.res.granted
	s.res.granted = granted
	s.res.mu.Unlock()
	if !same {
		// which fit: they were checked with the Grant
		s.SetLimits(granted.inbound, granted.outbound)
	}
}

// resend writes what the peer lacks, and then what has come meanwhile.
func (s *Session) resend(missing [][]byte) {
	for _, frames := range missing {
		if len(frames) == 0 {
			continue
		}
		if err := s.writeBatch(frames); err != nil {
			s.out.Resent()
			s.writeFailed(err)
			return
		}
	}
	s.out.Resent()
	s.writeLoop()
}

// pace waits until the session may be resumed once more.
func (r *resumption) pace(ctx context.Context) *Abort {
	for {
		wait := r.paces(0) - resumeAhead
		if wait <= 0 {
			return nil
		}
		if !sleep(ctx, wait) {
			return errResumedOften
		}
	}
}

var errResumedOften = codec.ErrOverloaded.Withf("the session is resumed too often: what was sent again for it is more than %d bytes a second", resumeRate)

// paces counts what a resume has cost, in bytes, and returns for how long what was counted is ahead
// of its rate.
func (r *resumption) paces(cost int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.paced.Before(now) {
		r.paced = now
	}
	r.paced = r.paced.Add(time.Duration(float64(cost) / resumeRate * float64(time.Second)))
	return r.paced.Sub(now)
}

// entitles reports whether secret entitles to the next resume.
func (r *resumption) entitles(secret [message.SecretSize]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok := subtle.ConstantTimeCompare(secret[:], r.secret[:]) == 1
	for _, former := range r.former {
		ok = ok || former != [message.SecretSize]byte{} && subtle.ConstantTimeCompare(secret[:], former[:]) == 1
	}
	return ok
}

// replace makes next the secret. The one that the peer has used is good until the peer is known to
// have next, and so is the one that it was sent before: which of its handshakes the peer goes on
// with is not known either.
func (r *resumption) replace(used, next [message.SecretSize]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.former = formerSecrets{used}
	if used != r.secret {
		r.former[1] = r.secret
	}
	r.secret = next
}

// settle is called when something has come over a Wire: its peer has the secret that it was sent.
func (r *resumption) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.former = formerSecrets{}
}

// latest returns the secret for the next resume.
func (r *resumption) latest() [message.SecretSize]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.secret
}

// newSecret returns what will entitle the peer to resume.
func newSecret() (secret [message.SecretSize]byte) {
	rand.Read(secret[:]) // never fails
	return secret
}
