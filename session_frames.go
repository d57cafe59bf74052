package asterisque

import (
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/internal/quota"
)

// lifecycle is the view of a session for its carrier: see carrier.Session.
type lifecycle Session

// LogValue implements slog.LogValuer.
func (u *lifecycle) LogValue() slog.Value { return (*Session)(u).LogValue() }

// Ended aborts all calls.
func (u *lifecycle) Ended(cause *Abort) { u.calls.End(cause) }

// PeerDrains implements Session.
func (u *lifecycle) PeerDrains() { u.holder.sessionChanged() }

// Away records that the session waits for another Wire.
func (u *lifecycle) Away(cause *Abort) {
	s := (*Session)(u)
	s.cfg.log.Info("session is away", "session", s, "cause", cause)
	s.res.Store(s.calls.Context(), time.Now().Add(s.cfg.resumeFor))
	s.holder.sessionChanged()
	(*hookNotifier)(u).away(cause)
	s.shared.suspended.Add(&s.res.suspended)
}

// StillAway updates the bytes that the session holds, which grow as the application sends.
func (u *lifecycle) StillAway() { u.shared.suspended.Look(&u.res.suspended) }

// Back records that the session has resumed over another Wire. The peer has its answer, and does
// not wait for the Repository.
func (u *lifecycle) Back() {
	s := (*Session)(u)
	s.shared.suspended.Remove(&s.res.suspended)
	s.res.Store(s.calls.Context(), time.Time{})
	(*hookNotifier)(u).back()
}

// Finished releases all state of the session.
func (u *lifecycle) Finished() {
	s := (*Session)(u)
	s.expiry.stop()
	s.calls.EndWaits()
	if s.res != nil {
		s.shared.suspended.Remove(&s.res.suspended)
		s.res.Forget()
	}
	s.holder.sessionEnded(s)
	u.endTelling()
	s.shared.Owners.Release(s.owner())
	defer (*hookNotifier)(u).ended() // also if the log ends the goroutine
	s.cfg.log.Info("session ends", "session", s, "cause", s.calls.Cause())
}

// Holds implements Session.
func (u *lifecycle) Holds() int {
	return quota.IdleSession + u.calls.Held()
}

// Fail implements Session.
func (u *lifecycle) Fail(a *Abort) { (*Session)(u).calls.Fail(a) }

// watchCertificate ends the session when the latest certificate of its peer expires. It is called
// while no goroutine reads.
func (u *lifecycle) watchCertificate() {
	u.expiry.stop()
	_, secure := u.calls.Carrier.Wire()
	if cert := (Peer{TLS: secure}).Certificate(); cert != nil && !u.cfg.outliveCertificates {
		u.expiry.start(cert, u.Fail)
	}
}

// endTelling subtracts the session's bytes from the tally of its owner.
func (u *lifecycle) endTelling() {
	u.calls.Release()
	(*Session)(u).owner().Tally.Add(-quota.IdleSession)
}
