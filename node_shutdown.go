package asterisque

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Draining returns a channel that is closed when [Node.Shutdown] or [Node.Close] is called: the
// node takes nothing new from then on. It is for what is told to the outside, as package healthpage
// does; a handler looks at [Draining].
func (n *Node) Draining() <-chan struct{} { return n.drain.begun }

// Shutdown stops listening and shuts down all sessions, at the same time; see [Session.Shutdown].
// Then it closes the node. Running calls get the time of ctx, but no more than that of
// [Timeouts].Drain, 30 seconds by default. [Hooks].Shutdown tells meanwhile how many still run.
//
// The error is that of ctx, if it ended before the running calls did, or ErrUnavailable if some
// were cut because the time of Timeouts.Drain was over. With the context of a handler that the node
// runs, it does not wait.
func (n *Node) Shutdown(ctx context.Context) error {
	if n.isZero() {
		return errZeroNode
	}
	n.drain.begin()
	for _, ln := range n.listeners.list() {
		closeListener(n.cfg.log, ln)
	}
	if s := calledBy(ctx); s != nil && s.shared == &n.shared {
		for _, s := range n.Sessions() {
			s.announceEnd()
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

// mostShaking is how long Shutdown waits for handshakes that this side has answered. That takes
// longer only where the answer cannot be written.
const mostShaking = time.Second

// awaitHandshakes refuses whose handshake has not been answered, and waits for the sessions of the
// others: they may have been called on already, so that to cut them off would fail those calls.
func (n *Node) awaitHandshakes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, mostShaking)
	defer cancel()
	for _, h := range n.handshakes.list() {
		if h.place != nil && h.move(nodeDrains) { // without a place it is this side's own
			h.end()
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
