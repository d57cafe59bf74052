package asterisque

import (
	"context"
)

// Connect connects to the node that listens at a URL, waits for the first session (unless
// Reconnection.Background says otherwise), and from then on keeps one, until Close, or until life
// ends, which governs the Connection as long as it lives. Attempts that fail are repeated, the
// first ones as well, except for what does not succeed by repeating alone: a certificate that is
// not accepted, a version or codec that does not fit, a peer that refuses this side. Such an error
// ends the Connection at once, also later, unless Reconnection.Persist says otherwise: its state is
// Lost then, its Err that error, and Reconnection.OnState is told.
func (n *Node) Connect(life context.Context, url string, how Reconnection) (*Connection, error) {
	if n.invalid != nil {
		return nil, n.invalid
	}
	c := newConnection(n, life, url, how)
	if !n.connections.add(c) {
		c.end(errNodeClosed)
		return nil, errNodeClosed
	}
	go c.run() // ends with c.ctx
	if how.Background {
		return c, nil
	}
	if _, a := c.wait(life); a != nil {
		c.Close()
		return nil, a
	}
	return c, nil
}
