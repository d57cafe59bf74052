package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/limits"
)

// shared is what the sessions of a node have in common. The node makes it once, and no session
// knows more of its node than this.
type shared struct {
	carriers carrier.Settings // fixed
	lookout  carrier.Lookout
	common   // these lock themselves
	staff
	owners  owners
	budget  budget
	durable durableAnswers
	aways   aways
	reports reports
}

// init prepares sh for a node.
func (sh *shared) init(cfg *config) {
	sh.born = time.Now()
	sh.workers.limit, sh.staff.most = cfg.nodeWorkers, cfg.maxWaiting
	sh.carriers = carrier.Settings{
		Log: cfg.log, PingInterval: cfg.pingInterval, PingTimeout: cfg.pingTimeout, WriteTimeout: cfg.writeTimeout,
		Stall: cfg.stall, ResumeFor: cfg.resumeFor, Now: sh.now, Lookout: &sh.lookout,
	}
	sh.aways.configure(cfg)
	sh.reports.log = cfg.log
	sh.owners.total = limits.NewTally(cfg.budget)
	sh.budget = budget{Tally: sh.owners.total, owners: &sh.owners}
	sh.nested.owners, sh.nested.most = &sh.owners, cfg.nestedReserve()
	sh.durable.init(durablePlan{
		lifetime: cfg.remember, most: cfg.remembered, share: cfg.memoryShare, running: cfg.plan.Workers, workers: cfg.nodeWorkers,
	}, &sh.owners)
}

// sessionHolder is who has made a session, and is told what becomes of it.
type sessionHolder interface {
	// sessionChanged is called when a session has lost its Wire, and when its peer drains it.
	sessionChanged()

	// sessionEnded is called at the very end of s.
	sessionEnded(s *Session)
}
