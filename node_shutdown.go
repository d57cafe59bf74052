package asterisque

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

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
