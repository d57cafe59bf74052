package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// newSession makes a session of the result of a handshake. The caller runs its carrier.
func newSession(sh *sharedState, holder sessionHolder, b *sessionStart) *Session {
	cfg, w, a, g := b.cfg, b.wire, &b.agreed, &b.grant
	maxBlock := a.MaxFrame - outbox.HeadSize
	if l, ok := w.(wire.Foreign); ok {
		// called before anything is counted, as it may panic
		maxBlock = min(maxBlock, l.MaxBlock())
	}
	s := &Session{
		id: a.Session, shared: sh, holder: holder, cfg: cfg, peerID: b.about.ID, owner: sh.owners.Join(b.about.quotaName(), b.about.Subject),
	}
	s.inboundCalls = inboundCalls{service: g.Service, highest: *g.MaxPriority, granted: g.standards(), private: cfg.private}
	s.sessionCalls.serving = &s.inboundCalls
	s.Coder = values.Coder{Codec: b.values, Session: s}
	ctx, end := context.WithCancelCause(context.Background())
	s.inbound = limits.NewCounter(g.inbound, s.reporter(Inbound))
	s.inbound.Tell(&s.owner.Tally)
	s.owner.Tally.Add(quota.IdleSession)
	s.ctx, s.common = ctx, &sh.nodeCalls
	s.outbound.Counter, s.outbound.share = limits.NewCounter(g.outbound, s.reporter(Outbound)), cfg.share
	s.outbound.Tell(&s.owner.Tally)
	s.promise(a, g.plan)
	s.setWindows(cfg.windows)
	if !b.dialled {
		s.table.odd = 1
	}
	s.maxBlock = uint32(maxBlock)
	if a.Resume {
		s.res = &resumeState{agreed: a.Settings, plan: g.plan, granted: g.limits()}
		if b.dialled {
			s.res.Ticket.Init(a.Session, a.Secret, "", nil)
		} else {
			s.res.Ticket.Init(a.Session, a.Secret, b.about.identity(), &sh.records)
			s.res.suspended.Init((*frameHandler)(s), s.owner)
		}
	}
	_, foreign := w.(wire.Foreign) // a foreign wire may not answer Pings, and takes no keys
	s.opens.keyless = foreign
	s.carrier.Init(&carrier.Config{
		Settings: &sh.carriers, Context: ctx, End: end, Upper: (*frameHandler)(s), Wire: w, TLS: b.about.TLS, Place: b.place,
		Out:     outbox.New(uint64(s.table.odd), a.MaxFrame, uint32(a.Overhead), cfg.share, s.outbound.Remove, (*hookNotifier)(s).dropReporter()),
		Inbound: s.inbound, Outbound: s.outbound.Counter, Tally: &s.owner.Tally,
		Largest: g.plan.Largest + outbox.HeadSize,
		Pings:   carrier.Pings{Dialled: b.dialled, Mute: foreign && a.Ping == 0, Interval: a.Ping, Timeout: a.Timeout},
		Resumes: a.Resume, KeptControls: max(g.plan.Room/8, leastKeptControls),
	})
	return s
}

// usualWindow bounds the window of a stream, in bytes, until the path is known to hold more. Over a
// short path, larger windows exceed the cache of the processor.
const usualWindow = 1 << 20

// promise sets up the grants of this side, by its plan, and those of the peer.
func (s *Session) promise(a *handshake.Agreement, p *limits.Plan) {
	s.terms.Ledger = dispatchPort{&s.sessionCalls}
	s.terms.Overhead, s.terms.Early = uint64(p.Overhead), uint64(p.Window)
	s.terms.PeerOverhead, s.terms.PeerEarly = a.Overhead, a.Early
	if !s.cfg.windowless {
		s.terms.Room = limits.NewRoom(p)
		s.terms.Room.Heed(&s.owner.Tally)
		s.terms.Most = uint64(max(s.cfg.window, p.Window))
		s.terms.Usual = min(s.terms.Most, usualWindow)
	}
	s.calls.Init(dispatch.Config{
		Scheduler: &s.shared.scheduler, Output: dispatchPort{&s.sessionCalls}, Owner: s.owner, Plan: p, Windows: s.terms.Room,
	})
	s.opens.init(a.Opens, uint64(a.MaxFrame)+a.Overhead+a.Early)
	s.opens.metadata = a.Metadata
	s.nesting.calls, s.nesting.room = int32(a.NestedCalls), int32(a.NestedRoom)
}
