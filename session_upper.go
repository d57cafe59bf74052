package asterisque

import (
	"log/slog"
	"time"
)

// upper is a session as its carrier sees it: see carrier.Upper.
type upper Session

// LogValue implements slog.LogValuer.
func (u *upper) LogValue() slog.Value { return (*Session)(u).LogValue() }

// Ended aborts all calls.
func (u *upper) Ended(cause *Abort) {
	open, refused := u.table.end()
	for _, e := range open {
		e.fail(cause)
	}
	for _, e := range refused {
		e.fail(drained(cause))
	}
}

// Away notes that the session waits for another Wire.
func (u *upper) Away(cause *Abort) {
	s := (*Session)(u)
	s.cfg.log.Info("session is away", "session", s, "cause", cause)
	s.res.record(s.ctx, time.Now().Add(s.cfg.resumeFor))
	s.holder.sessionChanged()
	(*watched)(u).away(cause)
	s.shared.aways.add(&s.res.away)
}

// StillAway tells what the session holds, which grows with what the application sends.
func (u *upper) StillAway() { u.shared.aways.look(&u.res.away) }

// Back notes that the session goes on over another Wire. The peer has been told, and waits for no
// Repository.
func (u *upper) Back() {
	s := (*Session)(u)
	s.shared.aways.remove(&s.res.away)
	s.res.record(s.ctx, time.Time{})
	(*watched)(u).back()
}

// Finished lets go of all that the session has.
func (u *upper) Finished() {
	s := (*Session)(u)
	s.expiry.stop()
	s.outbound.end()
	if s.res != nil {
		s.shared.aways.remove(&s.res.away)
		s.res.forget()
	}
	s.holder.sessionEnded(s)
	u.endTelling()
	s.shared.owners.release(s.owner)
	defer (*watched)(u).ended() // also if the log ends the goroutine
	s.cfg.log.Info("session ends", "session", s, "cause", s.cause())
}

// holds implements awaySession.
func (u *upper) holds() int {
	return heldSession + u.inbound.Held().Bytes + u.outbound.Held().Bytes + u.calls.held()
}

// fail implements awaySession.
func (u *upper) fail(a *Abort) { (*Session)(u).fail(a) }

// watchCertificate lets the session end when the certificate that its peer has shown last expires.
// It is called while nobody reads.
func (u *upper) watchCertificate() {
	u.expiry.stop()
	_, secure := u.carrier.Wire()
	if cert := (Peer{TLS: secure}).Certificate(); cert != nil && !u.cfg.outliveCertificates {
		u.expiry.start(cert, u.fail)
	}
}

// endTelling takes what the session has told its owner that it holds back.
func (u *upper) endTelling() {
	u.inbound.EndTelling()
	u.outbound.EndTelling()
	u.calls.holding.part.End()
	u.owner.tally.Add(-heldSession)
}
