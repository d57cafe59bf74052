package asterisque

import (
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/internal/quota"
)

// frameHandler is the view of a session for its carrier: see carrier.Upper.
type frameHandler Session

// LogValue implements slog.LogValuer.
func (u *frameHandler) LogValue() slog.Value { return (*Session)(u).LogValue() }

// Ended aborts all calls.
func (u *frameHandler) Ended(cause *Abort) {
	open, refused := u.table.end()
	for _, e := range open {
		e.fail(cause)
	}
	for _, e := range refused {
		e.fail(drained(cause))
	}
}

// Away records that the session waits for another Wire.
func (u *frameHandler) Away(cause *Abort) {
	s := (*Session)(u)
	s.cfg.log.Info("session is away", "session", s, "cause", cause)
	s.res.Store(s.ctx, time.Now().Add(s.cfg.resumeFor))
	s.holder.sessionChanged()
	(*hookNotifier)(u).away(cause)
	s.shared.suspended.Add(&s.res.suspended)
}

// StillAway updates the bytes that the session holds, which grow as the application sends.
func (u *frameHandler) StillAway() { u.shared.suspended.Look(&u.res.suspended) }

// Back records that the session has resumed over another Wire. The peer has its answer, and does
// not wait for the Repository.
func (u *frameHandler) Back() {
	s := (*Session)(u)
	s.shared.suspended.Remove(&s.res.suspended)
	s.res.Store(s.ctx, time.Time{})
	(*hookNotifier)(u).back()
}

// Finished releases all state of the session.
func (u *frameHandler) Finished() {
	s := (*Session)(u)
	s.expiry.stop()
	s.outbound.end()
	if s.res != nil {
		s.shared.suspended.Remove(&s.res.suspended)
		s.res.Forget()
	}
	s.holder.sessionEnded(s)
	u.endTelling()
	s.shared.owners.Release(s.owner)
	defer (*hookNotifier)(u).ended() // also if the log ends the goroutine
	s.cfg.log.Info("session ends", "session", s, "cause", s.cause())
}

// Holds implements Session.
func (u *frameHandler) Holds() int {
	return quota.IdleSession + u.inbound.Held().Bytes + u.outbound.Held().Bytes + u.calls.Held()
}

// Fail implements Session.
func (u *frameHandler) Fail(a *Abort) { (*Session)(u).fail(a) }

// watchCertificate ends the session when the latest certificate of its peer expires. It is called
// while no goroutine reads.
func (u *frameHandler) watchCertificate() {
	u.expiry.stop()
	_, secure := u.carrier.Wire()
	if cert := (Peer{TLS: secure}).Certificate(); cert != nil && !u.cfg.outliveCertificates {
		u.expiry.start(cert, u.Fail)
	}
}

// endTelling subtracts the session's bytes from the tally of its owner.
func (u *frameHandler) endTelling() {
	u.inbound.EndTelling()
	u.outbound.EndTelling()
	u.calls.End()
	u.owner.Tally.Add(-quota.IdleSession)
}
