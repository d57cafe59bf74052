package asterisque

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/relay"
	"github.com/asterisque-go/asterisque/wire"
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

// ErrElsewhere is the error of [Node.Accept] if the session of a Wire continues at another node, to
// which this one relays it: see Resume.Elsewhere.
var ErrElsewhere error = codec.ErrUnavailable.Withf("the session goes on at another node, to which its wire is relayed")

// relayedSession holds the two Wires of a session that continues at another node.
type relayedSession struct { // fixed
	near, far relay.Side // the peer's, and the other node's
	session   SessionID
	patience  time.Duration // bounds the time in which a side takes nothing
	log       *slog.Logger
}

func newRelaying(cfg *config, peer wire.Wire, a *acceptedPeer) *relayedSession {
	return &relayedSession{
		near:    relay.Side{Wire: peer, Largest: a.largest},
		far:     relay.Side{Wire: a.elsewhere, Largest: a.MaxFrame},
		session: a.Session, patience: cfg.writeTimeout, log: cfg.log,
	}
}

// run relays frames between the two Wires until either ends, or end is called.
func (r *relayedSession) run() {
	log := r.log.With("session", r.session.short(), "addr", guard.RemoteOf(r.log, r.near.Wire))
	log.Info("session is relayed")
	err := relay.Between(r.log, r.patience, r.near, r.far)
	log.Info("session is relayed no more", "error", err)
}

// end closes both Wires. The peer reconnects, to a running node.
func (r *relayedSession) end() {
	for _, w := range []wire.Wire{r.near.Wire, r.far.Wire} {
		guard.Apart(r.log, w, func() { w.Close() })
	}
}

// endRelays ends all relays at the same time: a Wire may take a moment to close.
func endRelays(list []*relayedSession) {
	var all sync.WaitGroup
	for _, r := range list {
		all.Go(r.end)
	}
	all.Wait()
}

// former returns the session that a peer wants to resume, if the peer has its secret and its
// identity, or the record that names another node as its owner. An error means that another node
// may have the session.
func (n *Node) former(ctx context.Context, was *handshake.Proof, p *Peer) (_ *Session, elsewhere *SessionRecord, err error) {
	if was.Session == (SessionID{}) {
		return nil, nil, nil
	}
	n.awaitBegin(ctx, was.Session)
	r, ok, err := n.records.get(ctx, was.Session)
	switch {
	case err != nil && n.cfg.elsewhere != nil:
		return nil, nil, errAnywhere
	case !ok:
		return nil, nil, nil
	}
	n.mu.Lock()
	s := n.resumable[was.Session]
	n.mu.Unlock()
	switch {
	case s == nil && r.Node != n.cfg.id:
		return nil, &r, nil
	case s == nil || !s.res.Entitles(was.Secret) || !s.res.ProvedBy(p.identity()):
		return nil, nil, nil // the session decides: the record may be older
	}
	return s, nil, nil
}

// awaitBegin waits for the begin of a session. Its peer may have lost the Wire already.
func (n *Node) awaitBegin(ctx context.Context, id SessionID) {
	n.mu.Lock()
	begins := n.beginning[id]
	n.mu.Unlock()
	if begins == nil {
		return
	}
	select {
	case <-begins:
	case <-ctx.Done():
	}
}

// rejectSession returns the error by which a session of a peer is rejected, or nil. Shutdown waits
// for handshakes that are not rejected here.
func (n *Node) rejectSession(p *Peer) error {
	if n.drain.hasBegun() {
		return handshake.ErrNodeClosed
	}
	return n.Owners.RejectSession(p.quotaName())
}

// IsResumable reports whether the node has a session with this id that the connecting peer may
// resume; see [WithResume].
func (n *Node) IsResumable(id SessionID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.resumable[id] != nil
}
