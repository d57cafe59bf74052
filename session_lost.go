package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// What becomes of a session when code of the application, its Wire included, panics or ends the
// goroutine on the way.

// runTo calls f, and then finishes the session if that is over. If f panics, or ends the goroutine,
// another one goes on.
func (s *Session) runTo(f func() (over bool)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			guard.Misbehaved(s.cfg.log, "what reads a session", v, "session", s)
			s.closeWire() // so that nothing is read any more
		}
		go s.runTo(s.goOn) // ends as this one would have
	}()
	over := f()
	returned = true
	if over {
		s.finish()
	}
}

// goOn is called when the goroutine of the reader was ended: the session ends with it. As always,
// what still comes is read until the peer has had the time to learn why.
func (s *Session) goOn() (over bool) {
	s.fail(codec.ErrPanicked.Withf("code of the application has ended the goroutine that reads"))
	if !s.wireClosed() {
		s.readLoop()
	}
	return true
}

// awaitEnd waits until the session, which must have been ended, has let go of all, but not for code
// of the application on the goroutine of the reader, which may be what waits.
func (s *Session) awaitEnd() {
	if !s.live.inside() {
		<-s.gone
	}
}

// wireBroke returns why the Wire cannot be read any more: it has not returned. v is as for
// misbehaved.
func (s *Session) wireBroke(v any) *Abort {
	guard.Misbehaved(s.cfg.log, "wire", v, "session", s)
	a := &Abort{Code: codec.SessionClosed, Message: "the wire failed: it " + guard.HowEnded(v)}
	if v == nil {
		s.fail(a)
		s.closeWire()
	}
	return a
}

// writerBroke is the same for writing. If the goroutine ends, so that nobody would hear of the
// error, the session does as well.
func (s *Session) writerBroke(v any) error {
	a := guard.Misbehaved(s.cfg.log, "wire", v, "session", s)
	if v == nil {
		s.fail(&Abort{Code: codec.SessionClosed, Message: "the wire failed: " + a.Message})
		s.writeFailed(a)
	}
	return a
}

// tryWriteBatch writes as much of batch as the Wire takes without waiting.
func (s *Session) tryWriteBatch(batch []byte) (n int, err error) {
	returned := false
	defer func() {
		if !returned {
			err = s.writerBroke(recover())
		}
	}()
	n, err = s.try.TryWriteBatch(batch)
	returned = true
	return n, err
}

// closeWire closes the Wire. Repeated calls do nothing but wait until it is closed.
func (s *Session) closeWire() {
	s.wireMu.Lock()
	if s.wireCloses {
		over := s.wireGone
		s.wireMu.Unlock()
		<-over
		return
	}
	s.wireCloses = true
	w := s.wire
	if !guard.IsSocket(w) { // which may take its time
		if s.wireGone == nil {
			s.wireGone = make(chan struct{})
		}
		s.wireMu.Unlock()
		guard.Apart(s.cfg.log, w, func() { w.Close() })
		s.wireMu.Lock()
	} else {
		w.Close()
	}
	defer s.wireMu.Unlock()
	if s.place != nil {
		s.place.Leave() // before anybody comes back over another Wire, which needs a place
		s.place = nil
	}
	if s.wireGone != nil {
		close(s.wireGone)
	}
	s.wireGone = gone
}

// wireClosed reports whether somebody closes the Wire, or has closed it.
func (s *Session) wireClosed() bool {
	s.wireMu.Lock()
	defer s.wireMu.Unlock()
	return s.wireCloses
}
