package asterisque

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
)

// A session that both sides agreed to resume outlives its Wire: it keeps what the peer has not acknowledged (package outbox), counts what has arrived, and when the Wire is lost it
// waits, away, for another one. What both sides lack is then sent again.
//
// One goroutine, run, owns that: it reads, it notices the loss, it makes sure that nobody writes any more, and it takes the next Wire over. So nothing of an old Wire is read
// once another one is there.

const (
	// An Ack goes along with whatever is written. By itself it goes after so many frames, or after ackDelay.
	ackFrames = 256
	ackBytes  = 256 << 10
	ackDelay  = 20 * time.Millisecond

	// leastKeptControls is how many bytes of Controls are kept at least for a peer that does not
	// acknowledge them. With more room there are more streams, and more of them.
	leastKeptControls = 1 << 20
)

// resumption is what a session has that can be resumed.
type resumption struct {
	secret  [codec.SecretSize]byte
	returns chan *comeback // to run, while the session is away

	// These belong to the reader.
	frames uint64 // countable ones since the last Ack of its own
	bytes  int

	timer *time.Timer // sends an Ack; nil before the first time
}

// comeback is another Wire for a session that is away.
type comeback struct {
	wire     wire.Wire
	place    *entry                      // of the Wire; nil on the side that connected
	about    Peer                        // what the handshake over it has told
	received uint64                      // how many countable frames the peer has
	confirm  func(received uint64) error // tells the peer how many this side has; may be nil
	result   chan error                  // holds one; nil means that the session has the Wire
}

// resumable reports whether s goes on after a has ended its Wire.
func (s *Session) resumable(a *Abort) bool {
	return s.res != nil && s.ctx.Err() == nil && a.Code == codec.SessionClosed && !a.Remote
}

// Away reports whether the session has lost its Wire and waits for another one; see [WithResume].
func (s *Session) Away() bool { return s.away.Load() }

// lost ends the Wire because the peer does not answer. A session that cannot be resumed ends with it.
func (s *Session) lost(a *Abort) {
	if s.res == nil {
		s.fail(a)
	}
	s.closeWire()
}

// leave is called by run when the Wire is lost. It returns when nobody writes any more.
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
	if s.conn != nil {
		s.conn.stir()
	}
}

// awaitReturn waits for another Wire, and reports false if there will be none.
func (s *Session) awaitReturn() bool {
	expired := time.NewTimer(s.cfg.resumeFor)
	defer expired.Stop()
	for {
		select {
		case c := <-s.res.returns:
			err := s.takeOver(c)
			c.result <- err
			if err == nil {
				return true
			}
			if s.ctx.Err() != nil {
				return false
			}
		case <-expired.C:
			s.fail(codec.ErrUnavailable.Withf("the peer did not come back within %v", s.cfg.resumeFor))
			return false
		case <-s.ctx.Done():
			return false
		}
	}
}

// takeOver goes on over another Wire. Run calls it, and is the writer.
func (s *Session) takeOver(c *comeback) error {
	missing, err := s.out.Resume(c.received)
	if err != nil {
		return err
	}
	if c.confirm != nil {
		err = c.confirm(s.got.Load())
	}
	if err != nil {
		s.out.Resent()
		s.out.Halt() // which is not claimed: run is still the writer
		return err
	}
	s.setWire(c.wire, c.about.TLS)
	s.setPlace(c.place)
	s.endWithCertificate() // which may be another one now
	s.live.restart()
	s.pongs.before = 0 // over this Wire nothing has arrived
	s.away.Store(false)
	s.cfg.log.Info("session goes on", "session", s, "addr", c.wire.RemoteAddr())
	s.writers.Go(func() { s.resend(missing) })
	return nil
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

// comeBack offers c to a session whose old Wire it closes, and waits until that has taken it, or not.
func (s *Session) comeBack(ctx context.Context, c *comeback) error {
	if !s.away.Load() {
		s.closeWire() // an old wire that comes back to life can do no harm
	}
	c.result = make(chan error, 1)
	select {
	case s.res.returns <- c:
		return <-c.result
	case <-ctx.Done():
		return contextError(ctx)
	case <-s.ctx.Done():
		return s.cause()
	}
}

// countFrame counts a countable frame of size bytes that has been dealt with.
func (s *Session) countFrame(size int) {
	s.got.Store(s.got.Load() + 1) // by the reader alone
	r := s.res
	r.frames++
	r.bytes += size
	if r.frames >= ackFrames || r.bytes >= ackBytes {
		r.frames, r.bytes = 0, 0
		s.ack(ackFrames / 2)
	}
	if !s.acking.Swap(true) {
		if r.timer == nil {
			r.timer = time.AfterFunc(ackDelay, func() {
				s.acking.Store(false)
				s.ack(1)
			})
		} else {
			r.timer.Reset(ackDelay)
		}
	}
}

// ack tells the peer what has arrived, if that is at least least frames more than it knows.
func (s *Session) ack(least uint64) {
	if s.out.PutAck(least) {
		s.write()
	}
}

// newSecret returns what will entitle the peer to resume.
func newSecret() (secret [codec.SecretSize]byte) {
	rand.Read(secret[:]) // never fails
	return secret
}

// entitled reports whether secret and identity are those with which the session began.
func (r *SessionRecord) entitled(secret []byte, identity string) bool {
	sum := sha256.Sum256(secret)
	return subtle.ConstantTimeCompare(sum[:], r.Secret[:]) == 1 && r.Identity == identity
}
