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
	s.calls.serving = inboundCalls{functions: g.Service.functions(), highest: *g.MaxPriority, granted: uint8(g.standards()), private: cfg.private}
	s.calls.Coder = values.Coder{Codec: b.values, Session: (*lifecycle)(s)}
	ctx, end := context.WithCancelCause(context.Background())
	s.calls.inbound = limits.NewCounter(g.inbound, s.reporter(Inbound))
	s.calls.inbound.Tell(&s.owner.Tally)
	s.owner.Tally.Add(quota.IdleSession)
	s.calls.outboundAdmission.session, s.calls.common = &s.calls.carrier, &sh.nodeCalls
	s.calls.outbound.Counter, s.calls.outbound.share = limits.NewCounter(g.outbound, s.reporter(Outbound)), cfg.share
	s.calls.outbound.Tell(&s.owner.Tally)
	s.promise(a, g.plan)
	s.calls.setWindows(cfg.windows)
	if !b.dialled {
		s.calls.table.odd = 1
	}
	s.calls.maxBlock = uint32(maxBlock)
	if a.Resume {
		s.res = &resumeState{agreed: a.Settings, plan: g.plan, granted: g.limits()}
		if b.dialled {
			s.res.Ticket.Init(a.Session, a.Secret, "", nil)
		} else {
			s.res.Ticket.Init(a.Session, a.Secret, b.about.identity(), &sh.records)
			s.res.suspended.Init((*lifecycle)(s), s.owner)
		}
	}
	_, foreign := w.(wire.Foreign) // a foreign wire may not answer Pings, and takes no keys
	s.calls.opens.keyless = foreign
	s.calls.carrier.Init(&carrier.Config{
		Settings: &sh.carriers, Context: ctx, End: end, Receiver: &s.calls, Session: (*lifecycle)(s), Wire: w, TLS: b.about.TLS, Place: b.place,
		Out:     outbox.New(uint64(s.calls.table.odd), a.MaxFrame, uint32(a.Overhead), cfg.share, s.calls.outbound.Remove, (*hookNotifier)(s).dropReporter()),
		Inbound: s.calls.inbound, Outbound: s.calls.outbound.Counter, Tally: &s.owner.Tally,
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
	s.calls.terms.Ledger = dispatchPort{&s.calls}
	s.calls.terms.Overhead, s.calls.terms.Early = uint64(p.Overhead), uint64(p.Window)
	s.calls.terms.PeerOverhead, s.calls.terms.PeerEarly = a.Overhead, a.Early
	if !s.cfg.windowless {
		s.calls.terms.Room = limits.NewRoom(p)
		s.calls.terms.Room.Heed(&s.owner.Tally)
		s.calls.terms.Most = uint64(max(s.cfg.window, p.Window))
		s.calls.terms.Usual = min(s.calls.terms.Most, usualWindow)
	}
	s.calls.serving.dispatcher.Init(dispatch.Config{
		Scheduler: &s.shared.scheduler, Output: dispatchPort{&s.calls}, Owner: s.owner, Plan: p, Windows: s.calls.terms.Room,
	})
	s.calls.opens.init(a.Opens, uint64(a.MaxFrame)+a.Overhead+a.Early)
	s.calls.opens.metadata = a.Metadata
	s.calls.nesting.calls, s.calls.nesting.room = int32(a.NestedCalls), int32(a.NestedRoom)
}
