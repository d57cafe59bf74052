package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/quota"
)

// newSession makes a session of the result of a handshake. The caller runs its carrier.
func newSession(sh *sharedState, holder sessionHolder, b *sessionStart) *Session {
	cfg, a, g := b.cfg, &b.agreed, &b.grant
	s := &Session{id: a.Session, shared: sh, holder: holder, cfg: cfg, peerID: b.about.ID}
	owner := sh.Owners.Join(b.about.quotaName(), b.about.Subject)
	ctx, end := context.WithCancelCause(context.Background())
	s.calls.Init(&call.Config{
		Common: &sh.Common, Scheduler: &sh.scheduler, Carriers: &sh.carriers, Session: (*lifecycle)(s), Owner: owner, Values: b.values,
		Context: ctx, End: end, Wire: b.wire, TLS: b.about.TLS, Place: b.place, Dialled: b.dialled, Agreed: a,
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

// owner returns the owner of the session.
func (s *Session) owner() *quota.Owner { return s.calls.Dispatcher().Owner() }
