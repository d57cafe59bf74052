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

// lookAgain is the interval at which a waiting call polls for changes without a notification.
const lookAgain = 50 * time.Millisecond

const neverSent = codec.NeverSent

// Invoke implements [asterisque.Caller]. It makes c on one of the servers.
func (p *Pool) Invoke(ctx context.Context, c *asterisque.Call) error {
	return p.invoke(ctx, c, p.anyOne)
}

// anyOne is any as a chooser.
func (p *Pool) anyOne(tried []*server) (s *server, ready bool, err error) {
	s, ready = p.any(tried)
	return s, ready, nil
}

// chooser returns a server that takes calls now and is not in tried, or nil. ready reports whether
// any server takes calls, tried ones included. err is set if there is no server to wait for.
type chooser func(tried []*server) (s *server, ready bool, err error)

// invoke makes a call on the servers that choose returns, one after the other, until one accepts
// it.
func (p *Pool) invoke(ctx context.Context, c *asterisque.Call, choose chooser) error {
	p.how.Budget.Earn()
	return p.goOn(ctx, c, choose, nil, nil)
}

// goOn continues invoke after the servers in tried have rejected the call. The last error was last.
func (p *Pool) goOn(ctx context.Context, c *asterisque.Call, choose chooser, tried []*server, last error) error {
	var d durableAffinity
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

// retryVerdict is the next step after a call.
type retryVerdict uint8

const (
	over      retryVerdict = iota // the outcome is final
	anywhere                      // the call is retried on any server
	elsewhere                     // the call is retried on another server
)

// after returns the next step after a call on a session of s that ended with err.
func (p *Pool) after(s *server, on *asterisque.Session, err error) retryVerdict {
	switch {
	case err == nil || !asterisque.Repeatable(err):
		return over
	case !s.stillOn(on) && sessionOver(err):
		return anywhere // at most once for each session, so it needs no budget
	case !errors.Is(err, asterisque.ErrUnavailable) && !errors.Is(err, asterisque.ErrOverloaded):
		return over
	case !p.how.Budget.Spend():
		return over
	}
	return elsewhere
}

// sessionOver reports whether a call that certainly did not run failed because its session had
// ended.
func sessionOver(err error) bool {
	var a *asterisque.Abort
	return errors.Is(err, asterisque.ErrUnavailable) || errors.Is(err, asterisque.ErrSessionClosed) || errors.As(err, &a) && a.Ran == neverSent
}

// await returns a server for a call. It waits for one, unless all servers that take calls have been
// tried: then it returns last.
func (p *Pool) await(ctx context.Context, c *asterisque.Call, choose chooser, tried []*server, last error) (*server, error) {
	if !p.shut.Load() {
		if s, _, _ := choose(tried); s != nil {
			return s, nil // the fast path
		}
	}
	if at, ok := c.Deadline(ctx); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at)
		defer cancel()
	}
	again := time.NewTicker(lookAgain) // polls for changes without a notification
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
		case err != nil:
			return nil, unsent(err, nil)
		case p.lost() != nil:
			return nil, unsent(p.lost(), nil)
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

// any chooses among the servers that calls are balanced over.
func (p *Pool) any(tried []*server) (_ *server, ready bool) {
	all := p.spread.Load()
	if len(all.servers) == 1 && len(tried) == 0 { // a choice that needs no clock
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

// serverSpread is the set of servers that calls are balanced over.
type serverSpread struct {
	servers []*server // fixed

	// best was the lightest known server at the last choice: Mitzenmacher, Prabhakar and Shah, Load
	// Balancing with Memory (2002). In a small set, both candidates are often slow or silent, and
	// then neither should get the call.
	best atomic.Pointer[server]
}

// outlier is the factor by which the best server has to be lighter than the lighter of two
// candidates to get the call instead. Among servers of about equal weight the best one must have no
// privilege, since a slightly shorter latency would attract most calls.
const outlier = 10

// two chooses between two random servers. It returns nil if the choice needs search instead.
func (p *serverSpread) two(tried []*server, now time.Time) *server {
	if len(p.servers) < 2 || len(tried) > 0 {
		return nil
	}
	a, b := distinct(p.servers)
	if !a.serves() || !b.serves() {
		return nil
	}
	return p.lighter(a, b, tried, now)
}

// distinct returns two random servers of at least two.
func distinct(servers []*server) (a, b *server) {
	i := rand.IntN(len(servers))
	j := rand.IntN(len(servers) - 1)
	if j >= i {
		j++
	}
	return servers[i], servers[j]
}

// lighter returns the lighter of two candidates, or the best server if that is lighter by the
// factor outlier.
func (p *serverSpread) lighter(a, b *server, tried []*server, now time.Time) *server {
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

// search chooses between two random servers of those that take calls, do not rest and were not
// tried. A server that has rested long enough gets a call first, as its trial. If all servers rest,
// the choice ignores the rests.
func (p *serverSpread) search(tried []*server, now time.Time) (_ *server, ready bool) {
	var fit, rest []*server
	for _, s := range p.servers {
		if !s.takes() {
			continue
		}
		ready = true
		switch {
		case slices.Contains(tried, s):
		case !s.ejector.busy.Load():
			fit = append(fit, s)
		case s.ejector.enter(now):
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

// lost returns why no server will ever take a call, or nil. Unless the pool has ended, this only
// happens when its node is closed, or when no URL can be used.
func (p *Pool) lost() error {
	var why []error
	for _, s := range p.spread.Load().servers {
		err := s.conn.Err()
		if err == nil {
			return nil
		}
		why = append(why, err)
	}
	if why == nil {
		return nil
	}
	return failed(few(why), "the pool connects to none of its servers any more")
}
