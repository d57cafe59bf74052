package asterisque

import (
	"context"
)

// Connect connects to the node that listens at a URL, waits for the first session, and from then on
// keeps one, until Close, or until life ends, which governs the Connection as long as it lives.
// Attempts that fail are repeated, the first ones as well, except for what cannot succeed by
// repeating: a certificate that is not accepted, a version or codec that does not fit, a peer that
// refuses this side. Such an error ends the Connection at once, also later.
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
	if _, a := c.wait(life); a != nil {
		c.Close()
		return nil, a
	}
	return c, nil
}
