package asterisque

import (
	"context"
	"maps"
	"slices"
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
	if !n.addConnection(c) {
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

// nodeConnection is a connection, as far as its node needs to know it.
type nodeConnection interface {
	// Shutdown ends it in good order.
	Shutdown(ctx context.Context) error

	// closeFor ends it because of cause, and waits until nothing of it is left.
	closeFor(cause error)
}

// addConnection notes that c begins. It reports false if the node is closed.
func (n *Node) addConnection(c nodeConnection) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sessions == nil {
		return false
	}
	if n.connections == nil {
		n.connections = make(map[nodeConnection]struct{})
	}
	n.connections[c] = struct{}{}
	return true
}

// removeConnection is called when c is over.
func (n *Node) removeConnection(c nodeConnection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.connections, c)
}

// openConnections returns the connections that are not over.
func (n *Node) openConnections() []nodeConnection {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.connections))
}
