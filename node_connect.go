package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/internal/handshake"
)

// Connect connects to the node that listens at a URL, waits for the first session (unless
// ReconnectConfig.Background is set), and from then on maintains a session, until Close or the end
// of life. life governs the whole Connection. Failed attempts are repeated, the first ones as well,
// unless their error is final. Final errors are:
//
//   - The URL can never be used ([wire.ErrURL]), or this node is closed.
//   - The application of either side rejects the other one, with ErrUnauthorized or ErrHandshake
//     ([Access].Accept, [Access].Credential).
//   - The announcements of the two nodes do not match: the version of the protocol, or the value
//     codecs (ErrHandshake).
//
// A final error ends the Connection at once, also later: its state becomes Lost, Err returns the
// error, and ReconnectConfig.OnState is called. With ReconnectConfig.RetryFatal only the first kind
// is final. Any other error may be temporary, and is retried. No error of TLS is final, neither an
// alert nor a certificate error, because either side may renew certificates and authorities. A peer
// with another protocol is not final either, as it may be a load balancer without a server.
// [Connection.NotConnectedError] and the node's log report the current error;
// ReconnectConfig.MaxOutage and life bound the time of the attempts. The page [about reconnecting]
// has a table of errors.
//
// [about reconnecting]: https://github.com/asterisque-go/asterisque/blob/main/docs/reconnecting.md
func (n *Node) Connect(life context.Context, url string, how ReconnectConfig) (*Connection, error) {
	if err := n.ready(); err != nil {
		return nil, err
	}
	if err := how.check(); err != nil {
		return nil, err
	}
	c := newConnection(n, life, url, how)
	if !n.connections.Add(c) {
		c.end(handshake.ErrNodeClosed)
		return nil, handshake.ErrNodeClosed
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

// check returns an error that names each duration that is too short, or nil.
func (r *ReconnectConfig) check() error {
	var m optionErrors
	for _, t := range []struct {
		name  string
		value time.Duration
	}{{"First", r.First}, {"Most", r.Most}, {"MaxOutage", r.MaxOutage}} {
		if t.value > 0 {
			m.atLeast("ReconnectConfig."+t.name, t.value, leastWait)
		}
	}
	return m.asError()
}
