package pool

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// members are the servers of the last set, and the connections to some of them: those of the
// subset, and those that a call has used by URL or key.
type members struct {
	mu        sync.Mutex
	closed    bool               // guarded by mu, as all below: no server may join
	named     map[string]Address // by URL
	urls      []string           // of named
	connected map[string]*server // servers no longer in the set whose calls still run
	leaving   map[*server]bool   // no longer in the set, with running calls
	since     time.Time          // when the pool began
	failure   error              // of the Resolver, since its last set; nil: none
}

func (m *members) init() {
	m.named, m.connected, m.since = make(map[string]Address), make(map[string]*server), time.Now()
	m.leaving = make(map[*server]bool)
}

// close rejects further servers, and returns all that are connected or leaving.
func (m *members) close() (left []*server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, s := range m.connected {
		left = append(left, s)
	}
	for s := range m.leaving {
		left = append(left, s)
	}
	return left
}

// known returns the URLs of all servers. The slice is immutable.
func (m *members) known() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.urls
}

// follow applies the sets of the Resolver until the pool ends. It sends the first outcome, nil or
// an error, to first. A Resolver that panics, or ends after an error, is called again later.
func (p *Pool) follow(resolve Resolver, first chan<- error) {
	told := false
	tell := func(err error) {
		if !told {
			first <- err
			told = true
		}
	}
	defer func() { tell(asterisque.ErrPanicked.Withf("the Resolver of the pool has ended its goroutine")) }()
	ctx := context.WithValue(p.ctx, seekKey{}, &p.sought)
	for times := 0; p.ctx.Err() == nil; times++ {
		err, good := p.resolve(ctx, resolve, tell)
		switch {
		case good && err == nil:
			return // the last set stays for good
		case good:
			times = 0
		case err == nil:
			err = asterisque.ErrUnavailable.Withf("the servers of the pool are not known: its Resolver has ended without naming any")
		}
		p.failed(err)
		tell(err)
		pause(ctx, growing(times, time.Second, time.Minute))
	}
}

// resolve runs the Resolver to its end. It returns the Resolver's last error, unless a set followed
// it, and whether a valid set was yielded.
func (p *Pool) resolve(ctx context.Context, resolve Resolver, tell func(error)) (last error, good bool) {
	returned := false
	defer func() {
		if !returned {
			last = guard.Misbehaved(p.node.Logger(), "pool.Resolver", recover())
		}
	}()
	for set, err := range resolve(ctx) {
		last = p.take(set, err)
		good = good || last == nil
		tell(last)
		if p.ctx.Err() != nil {
			break
		}
	}
	returned = true
	return last, good
}

// seek makes the Resolver look for other servers at once, if all servers that calls are balanced
// over reject calls or are in tried. Only [DNS], or a Resolver in its retry delay, responds to it.
func (p *Pool) seek(tried []*server) {
	now := time.Now()
	if last := p.soughtAt.Load(); last != nil && now.Sub(*last) < lookAgain {
		return
	}
	for _, s := range p.spread.Load().servers {
		if !slices.Contains(tried, s) && !s.refuses(now) {
			return
		}
	}
	p.soughtAt.Store(&now)
	p.sought.Signal()
}

// jitter returns a random part of d.
func jitter(d time.Duration) time.Duration { return rand.N(d + 1) }

// failed records an error of the Resolver.
func (p *Pool) failed(err error) {
	p.node.Logger().Warn("pool: the servers cannot be looked up, the last ones stay", "error", err)
	p.members.mu.Lock()
	p.members.failure = err
	p.members.mu.Unlock()
	p.change.Signal()
}

// take applies a set that a Resolver has yielded, or returns the error.
func (p *Pool) take(set []Address, err error) error {
	if err == nil {
		set, err = checkAs(set, p.fits)
	}
	if p.Err() != nil {
		return p.over()
	}
	if err != nil {
		err = failed(err, "the servers of the pool are not known")
		p.failed(err)
		return err
	}
	if err := p.spreadOver(set, p.members.replace(set)); err != nil && !p.shut.Load() {
		err = failed(err, "the node of the pool connects to nothing")
		p.end(err) // it cannot recover
		return err
	}
	p.change.Signal()
	return nil
}

// fits returns an error if the pool cannot use the URL. With Config.Dial the URL is only a name.
func (p *Pool) fits(url string) error {
	if p.how.Dial != nil && url != "" {
		return nil
	}
	return wire.CheckURL(url)
}

// replace replaces the set, and returns the servers that have left. Once the pool is closed, it
// does nothing.
func (m *members) replace(set []Address) (gone []*server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.failure = nil
	m.named, m.urls = make(map[string]Address, len(set)), make([]string, len(set))
	for i, a := range set {
		m.named[a.URL], m.urls[i] = a, a.URL
	}
	for url, s := range m.connected {
		if m.named[url] != s.address {
			gone = append(gone, s)
			delete(m.connected, url)
			m.leaving[s] = true
		}
	}
	return gone
}

// spreadOver balances calls over the servers of the subset, and drains the servers that have left.
// It returns the error of a node that makes no more connections.
func (p *Pool) spreadOver(set []Address, gone []*server) (err error) {
	chosen := set
	if n := p.how.Subset; n > 0 && n < len(set) {
		urls := make([]string, len(set))
		for i, a := range set {
			urls[i] = a.URL
		}
		chosen = nil
		for _, i := range subset(p.client, urls, n) {
			chosen = append(chosen, set[i])
		}
	}
	var servers []*server
	for _, a := range chosen {
		s, failed := p.join(a.URL)
		if failed != nil {
			err = failed
			continue
		}
		servers = append(servers, s)
	}
	p.spread.Store(&serverSpread{servers: servers})
	for _, s := range gone {
		p.seeOff(s)
	}
	return err
}

// join returns a server of the last set, and connects to it unless it is connected.
func (p *Pool) join(url string) (*server, error) {
	m := &p.members
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.connected[url]; s != nil {
		return s, nil
	}
	a, named := m.named[url]
	switch {
	case m.closed:
		return nil, p.over()
	case !named:
		return nil, asterisque.ErrUnavailable.Withf("the server %s is not in the pool: Pool.Servers lists those that are", transport.ShowURL(url))
	}
	s := newServer(p, a)
	// reconnection sets Background, so that Connect does not wait for the session
	conn, err := p.node.Connect(p.ctx, url, s.reconnection())
	if err != nil {
		return nil, err
	}
	s.conn = conn
	m.connected[url] = s
	if len(p.how.Health) > 0 {
		p.running.Go(s.heed) // ends with the connection
	}
	return s, nil
}

// seeOff ends the connection to a server that has left the set, once its calls have ended. Once the
// pool is closed or shut down, the pool itself ends that connection.
func (p *Pool) seeOff(s *server) {
	m := &p.members
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	p.running.Go(func() { // ends with the calls, or with the pool
		s.conn.Shutdown(p.ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.leaving, s)
	})
}
