package pool

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/asterisque-go/asterisque"
)

// Most calls use the session that the pool chooses directly: see [asterisque.Chooser]. Calls that
// have to wait, that carry Blocks or have options, or that a server has not run, use Invoke.

// Choose implements [asterisque.Chooser].
func (p *Pool) Choose() (c asterisque.Choice, ok bool) {
	if p.shut.Load() {
		return c, false
	}
	servers := p.spread.Load().servers
	var s *server
	if len(servers) == 1 {
		s = servers[0]
	} else if s, _ = p.any(nil); s == nil {
		return c, false
	}
	if c, ok = s.conn.Choose(); !ok || s.unwell.Load() {
		return c, false
	}
	p.how.Budget.Earn()
	c.Of = s
	// With a single server the latency is only informational. Two clock readings for each call
	// would cost more than the rest of Choose.
	if len(servers) > 1 || rand.Uint32()%16 == 0 {
		c.At = time.Now()
	}
	s.load.outstanding.Add(1)
	return c, true
}

// Chosen implements [asterisque.Chooser].
func (p *Pool) Chosen(c asterisque.Choice, err error) (again asterisque.Caller) {
	s := c.Of.(*server)
	s.load.outstanding.Add(-1)
	if !c.At.IsZero() && measures(err) {
		s.load.note(c.At, time.Now(), good(err))
	}
	s.note(c.At, err)
	switch p.after(s, c.Session, err) {
	case elsewhere:
		return &singleAttempt{p, []*server{s}, err}
	case anywhere:
		return &singleAttempt{p, nil, err}
	}
	return nil
}

// singleAttempt is the Caller for a call that one server has rejected.
type singleAttempt struct { // fixed
	pool  *Pool
	tried []*server
	last  error
}

// Invoke implements [asterisque.Caller].
func (a *singleAttempt) Invoke(ctx context.Context, c *asterisque.Call) error {
	return a.pool.goOn(ctx, c, a.pool.anyOne, a.tried, a.last)
}
