package asterisque

import (
	"context"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// newSession makes a session of the result of a handshake. The caller runs its carrier.
func newSession(sh *sharedState, holder sessionHolder, b *sessionStart) *Session {
	cfg, a, g := b.cfg, &b.agreed, &b.grant
	s := &Session{id: a.Session, shared: sh, holder: holder, cfg: cfg, peerID: b.about.ID}
	owner := sh.Owners.Join(b.about.quotaName(), b.about.Subject)
	ctx, end := context.WithCancelCause(context.Background())
	s.calls.Init(&call.Config{
		Common: &sh.Common, Scheduler: &sh.scheduler, Carriers: &sh.carriers, Session: (*lifecycle)(s), Owner: owner, Values: b.values,
		Context: ctx, End: end, Wire: b.wire, TLS: b.about.TLS, Place: b.place, Dialled: b.dialled, Agreed: *a,
		Plan: g.plan, Inbound: g.inbound, Outbound: g.outbound, Window: cfg.window, Windowless: cfg.windowless, Share: cfg.share,
		MaxOutstanding: cfg.windows, Private: cfg.private, Offer: g.offer(),
		InboundChanged: s.reporter(Inbound), OutboundChanged: s.reporter(Outbound), Dropped: (*hookNotifier)(s).dropReporter(),
	})
	owner.Tally.Add(quota.IdleSession)
	if a.Resume {
		s.res = &resumeState{agreed: a.Settings, plan: g.plan, granted: g.limits()}
		if b.dialled {
			s.res.Ticket.Init(a.Session, a.Secret, "", nil)
		} else {
			s.res.Ticket.Init(a.Session, a.Secret, b.about.identity(), &sh.records)
			s.res.suspended.Init((*lifecycle)(s), owner)
		}
	}
	return s
}

// sessionStart holds the parameters of a new session.
type sessionStart struct {
	cfg     *sessionConfig
	wire    wire.Wire
	place   transport.Place // of the Wire; nil without one
	agreed  handshake.Agreement
	about   Peer
	values  *values.Codec // agreed
	grant   Grant
	dialled bool // by this side
}

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

// Relieve drops the Blocks of ended streams that the application does not take.
func (u *lifecycle) Relieve() bool { return u.calls.DropLeft() }

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
