package asterisque

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// Draining returns a channel that is closed when [Node.Shutdown] or [Node.Close] is called: from
// then on the node accepts no calls. The channel is for reports to the outside, such as those of
// package healthpage; a handler uses [Draining].
func (n *Node) Draining() <-chan struct{} { return n.drain.begun }

// Shutdown stops listening, shuts down all sessions at the same time (see [Session.Shutdown]), and
// then closes the node. Running calls may finish until ctx ends, but no longer than
// [Timeouts].Drain, 30 seconds by default. [Hooks].Shutdown reports the progress.
//
// The error is that of ctx, if ctx ended before the running calls, or ErrUnavailable if calls were
// cut after Timeouts.Drain. Called with the context of a handler that the node runs, Shutdown does
// not wait.
func (n *Node) Shutdown(ctx context.Context) error {
	if n.isZero() {
		return errZeroNode
	}
	n.drain.begin()
	for _, ln := range n.listeners.list() {
		guard.CloseListener(n.cfg.log, ln)
	}
	if s := calledBy(ctx); s != nil && s.shared == &n.sharedState {
		for _, s := range n.Sessions() {
			s.calls.AnnounceEnd(carrier.Now)
		}
		go n.Shutdown(context.Background()) // ends with the running calls, or with their time
		return nil
	}
	endRelays(n.relays.list())
	n.awaitHandshakes(ctx)
	told := n.tellProgress(ctx)
	err := n.shutDownSessions(ctx)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	n.Close()
	told()
	return err
}

// mostShaking bounds how long Shutdown waits for handshakes that this side has answered. A
// handshake takes longer only if the answer cannot be written.
const mostShaking = time.Second

// awaitHandshakes rejects unanswered handshakes, and waits for the sessions of answered ones: the
// peer may have made calls on those already, and a cut would fail these calls.
func (n *Node) awaitHandshakes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, mostShaking)
	defer cancel()
	for _, h := range n.handshakes.list() {
		if h.Place != nil { // without a place it is this side's own
			h.Drain()
		}
	}
	select {
	case <-n.drain.shaken():
	case <-ctx.Done():
	}
}

// shutDownSessions shuts down all sessions and connections, and waits for their ends. It returns
// the first error.
func (n *Node) shutDownSessions(ctx context.Context) error {
	var all errgroup.Group
	for _, c := range n.connections.list() {
		all.Go(func() error { return c.Shutdown(ctx) })
	}
	for _, s := range n.Sessions() {
		all.Go(func() error { return s.Shutdown(ctx) })
	}
	return all.Wait()
}

// progressPace is the minimum interval between reports of the progress of a Shutdown.
const progressPace = 100 * time.Millisecond

// shutdownProgress reports a Shutdown of a node to the hooks.
type shutdownProgress struct {
	node  *Node            // these are fixed
	until time.Time        // time at which running calls are cut; zero: never
	last  ShutdownProgress // last report; owned by the reporting goroutine
}

// LogAttrs implements callback.Source.
func (p *shutdownProgress) LogAttrs() []any { return []any{"node", p.node.cfg.id} }

// Closed implements callback.Source: it is never closed.
func (p *shutdownProgress) Closed() *bool { return new(bool) }

// tellProgress reports the progress of a Shutdown with ctx to the hooks, until the returned
// function is called. Only the first Shutdown of the node reports.
func (n *Node) tellProgress(ctx context.Context) (end func()) {
	if len(n.cfg.hooks.shutdown) == 0 || n.drain.told.Swap(true) {
		return func() {}
	}
	p := &shutdownProgress{node: n}
	if n.cfg.drain > 0 {
		p.until = time.Now().Add(n.cfg.drain)
	}
	if at, ok := ctx.Deadline(); ok && (p.until.IsZero() || at.Before(p.until)) {
		p.until = at
	}
	p.look(true)
	over, ended := make(chan struct{}), make(chan struct{})
	go p.watch(over, ended) // ends when over is closed
	return func() {
		close(over)
		<-ended
		p.look(true)
	}
}

// watch reports changes until over is closed.
func (p *shutdownProgress) watch(over <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	t := time.NewTicker(progressPace)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.look(false)
		case <-over:
			return
		}
	}
}

// look reports the remaining sessions and calls, if they have changed or always is true.
func (p *shutdownProgress) look(always bool) {
	now := ShutdownProgress{Left: -1}
	for _, s := range p.node.Sessions() {
		now.Sessions++
		now.Calls += s.calls.Len()
	}
	if !always && now.Sessions == p.last.Sessions && now.Calls == p.last.Calls {
		return
	}
	p.last = now
	if !p.until.IsZero() {
		now.Left = max(0, time.Until(p.until))
	}
	hooks := &p.node.cfg.hooks
	f := hooks.shutdown
	p.node.reports.Add(p, callback.Report{Name: "Shutdown", Kind: callback.State, N: len(f), Call: func(i int) { f[i](now) }})
}

// nodeConnection is the interface of a connection for its node.
type nodeConnection interface {
	// Shutdown ends the connection gracefully.
	Shutdown(ctx context.Context) error

	// closeFor ends the connection with cause, and waits for the end of its goroutines.
	closeFor(cause error)
}

// closers is a set of objects that a node ends when it is closed. It locks itself.
type closers[T comparable] struct {
	mu     sync.Mutex
	all    map[T]struct{} // guarded by mu, as closed
	closed bool
}

// Add adds v. It reports false if the set is closed.
func (k *closers[T]) Add(v T) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	if k.all == nil {
		k.all = make(map[T]struct{})
	}
	k.all[v] = struct{}{}
	return true
}

// IsClosed reports whether the set is closed.
func (k *closers[T]) IsClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// Remove removes v, if it is present.
func (k *closers[T]) Remove(v T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, v)
}

// list returns the elements.
func (k *closers[T]) list() []T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.all))
}

// close closes the set to further elements, and returns the present ones.
func (k *closers[T]) close() []T {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	return k.list()
}

// nodeDrain records whether a node is shutting down.
type nodeDrain struct {
	once  sync.Once
	begun chan struct{} // closed when the shutdown begins; fixed

	told atomic.Bool // a Shutdown reports its progress to the hooks: at most one does

	mu sync.Mutex
	// guarded by mu, as none: inbound handshakes, until their sessions begin
	shaking int
	none    chan struct{} // closed when shaking is 0; nil without a waiter
}

// hasBegun reports whether the node is shutting down.
func (d *nodeDrain) hasBegun() bool {
	select {
	case <-d.begun:
		return true
	default:
		return false
	}
}

func (d *nodeDrain) begin() { d.once.Do(func() { close(d.begun) }) }

// shakes counts a handshake until the returned function is called.
func (d *nodeDrain) shakes() (over func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shaking++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.shaking--; d.shaking == 0 && d.none != nil {
			close(d.none)
			d.none = nil
		}
	}
}

// shaken returns a channel that is closed when no handshake is under way, for any number of
// Shutdowns.
func (d *nodeDrain) shaken() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.none == nil {
		d.none = make(chan struct{})
	}
	c := d.none
	if d.shaking == 0 {
		close(c)
		d.none = nil
	}
	return c
}
