package pool

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// lookAgain is how often a call that waits looks for what nobody tells.
const lookAgain = 50 * time.Millisecond

const neverSent = codec.NeverSent

// Invoke implements [asterisque.Caller]: it makes c on one of the servers.
func (p *Pool) Invoke(ctx context.Context, c *asterisque.Call) error {
	return p.invoke(ctx, c, p.anyOne)
}

// anyOne is any as a chooser.
func (p *Pool) anyOne(tried []*server) (s *server, ready bool, err error) {
	s, ready = p.any(tried)
	return s, ready, nil
}

// chooser returns a server that takes calls now and is none of tried, or nil. ready says whether
// any takes calls, tried ones included, and err that there is none to wait for.
type chooser func(tried []*server) (s *server, ready bool, err error)

// invoke makes a call on servers that choose returns, one after the other, until one has taken it.
func (p *Pool) invoke(ctx context.Context, c *asterisque.Call, choose chooser) error {
	p.how.Budget.Earn()
	return p.goOn(ctx, c, choose, nil, nil)
}

// goOn is invoke after servers have refused the call, the last one with last.
func (p *Pool) goOn(ctx context.Context, c *asterisque.Call, choose chooser, tried []*server, last error) error {
	var d durable
	for {
		s, err := p.await(ctx, c, choose, tried, last)
		if s == nil {
			return err
		}
		choose = d.keep(c, s, choose)
		session := s.conn.Session()
		err = s.invoke(ctx, c, session)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return d.outcome(ctx, session, err)
		}
		switch d.after(ctx, p, s, session, err) {
		case over:
			return err
		case elsewhere:
			tried = append(slices.Clip(tried), s)
		}
		last = err
	}
}

// verdict is what is to be done after a call.
type verdict uint8

const (
	over      verdict = iota // it is the outcome
	anywhere                 // the call is made again, on whatever server
	elsewhere                // on another one
)

// after returns what is to be done after a call on a session of s that ended with err.
func (p *Pool) after(s *server, on *asterisque.Session, err error) verdict {
	switch {
	case err == nil || !asterisque.Repeatable(err):
		return over
	case !s.stillOn(on) && sessionOver(err):
		return anywhere // once for each session, so this needs no budget
	case !errors.Is(err, asterisque.ErrUnavailable) && !errors.Is(err, asterisque.ErrOverloaded):
		return over
	case !p.how.Budget.Spend():
		return over
	}
	return elsewhere
}

// sessionOver reports whether a call that certainly did not run failed because its session was
// over.
func sessionOver(err error) bool {
	var a *asterisque.Abort
	return errors.Is(err, asterisque.ErrUnavailable) || errors.Is(err, asterisque.ErrSessionClosed) || errors.As(err, &a) && a.Ran == neverSent
}

// await returns a server for a call, for which it waits unless those that take calls have all been
// tried: then the error is the last one.
func (p *Pool) await(ctx context.Context, c *asterisque.Call, choose chooser, tried []*server, last error) (*server, error) {
	if !p.shut.Load() {
		if s, _, _ := choose(tried); s != nil {
			return s, nil // without what follows
		}
	}
	if at, ok := c.Deadline(ctx); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at)
		defer cancel()
	}
	again := time.NewTicker(lookAgain) // what only time changes
	defer again.Stop()
	for {
		changed := p.change.Next()
		s, ready, err := choose(tried)
		if s == nil {
			p.seek(tried)
		}
		switch {
		case s != nil && !p.shut.Load():
			return s, nil
		case last != nil && (ready || c.FailFast()):
			return nil, last
		case p.shut.Load() || p.ctx.Err() != nil:
			return nil, unsent(p.over(), nil)
		case p.lost():
			return nil, unsent(failed(p.Err(), "the node of the pool is closed"), nil)
		case err != nil:
			return nil, unsent(err, nil)
		case c.FailFast():
			return nil, unsent(asterisque.ErrUnavailable.Withf("the call does not wait for a server"), p.outage())
		}
		select {
		case <-again.C:
		case <-changed:
		case <-p.ctx.Done():
		case <-ctx.Done():
			return nil, p.inVain(ctx)
		}
	}
}

// any chooses among the servers that calls are spread over.
func (p *Pool) any(tried []*server) (_ *server, ready bool) {
	all := p.spread.Load()
	if len(all.servers) == 1 && len(tried) == 0 { // a choice without a clock
		s := all.servers[0]
		if s.takes() {
			return s, true
		}
		return nil, false
	}
	now := time.Now()
	if s := all.two(tried, now); s != nil {
		return s, true
	}
	return all.search(tried, now)
}

// spread is the servers that calls are spread over.
type spread struct {
	servers []*server // fixed

	// best was the lightest one known when a server was chosen last: Mitzenmacher, Prabhakar and
	// Shah, Load Balancing with Memory (2002). Two slow or silent servers of a few are often both
	// candidates, and then neither should get the call.
	best atomic.Pointer[server]
}

// outlier is how many times heavier than the best server the lighter of two candidates is when the
// best one gets the call in its place. Among servers that are about equal the best one must have no
// privilege, since a slightly shorter latency would draw most calls.
const outlier = 10

// two chooses between two servers taken by chance, and returns nil unless that is as easy as
// mostly.
func (p *spread) two(tried []*server, now time.Time) *server {
	if len(p.servers) < 2 || len(tried) > 0 {
		return nil
	}
	a, b := distinct(p.servers)
	if !a.serves() || !b.serves() {
		return nil
	}
	return p.lighter(a, b, tried, now)
}

// distinct returns two of at least two servers by chance.
func distinct(servers []*server) (a, b *server) {
	i := rand.IntN(len(servers))
	j := rand.IntN(len(servers) - 1)
	if j >= i {
		j++
	}
	return servers[i], servers[j]
}

// lighter returns the lighter of two candidates, or the best server if that is far lighter.
func (p *spread) lighter(a, b *server, tried []*server, now time.Time) *server {
	s, own := a, a.load.weigh(now)
	if other := b.load.weigh(now); other.lighter(own, 1) {
		s, own = b, other
	}
	best := p.best.Load()
	if best == s {
		return s
	}
	if best != nil && best.serves() && !slices.Contains(tried, best) {
		if least := best.load.weigh(now); !own.lighter(least, 1) {
			if least.lighter(own, outlier) {
				return best
			}
			return s
		}
	}
	p.best.Store(s)
	return s
}

// search is two among those that take calls, do not rest and were not tried. A server that has
// rested long enough gets a call first, on trial. While all rest, none does.
func (p *spread) search(tried []*server, now time.Time) (_ *server, ready bool) {
	var fit, rest []*server
	for _, s := range p.servers {
		if !s.takes() {
			continue
		}
		ready = true
		switch {
		case slices.Contains(tried, s):
		case !s.rests.busy.Load():
			fit = append(fit, s)
		case s.rests.enter(now):
			return s, true
		default:
			rest = append(rest, s)
		}
	}
	if len(fit) == 0 && len(tried) == 0 {
		fit = rest
	}
	switch len(fit) {
	case 0:
		return nil, ready
	case 1:
		return fit[0], true
	}
	a, b := distinct(fit)
	return p.lighter(a, b, tried, now), true
}

// lost reports whether all connections are over, which without the end of the pool only happens
// when its node is closed.
func (p *Pool) lost() bool {
	servers := p.spread.Load().servers
	for _, s := range servers {
		if s.conn.Err() == nil {
			return false
		}
	}
	return len(servers) > 0
}
