package asterisque

import (
	"context"
	"time"
)

// Connect connects to the node that listens at a URL, waits for the first session (unless
// Reconnection.Background says otherwise), and from then on keeps one, until Close, or until life
// ends, which governs the Connection as long as it lives. Attempts that fail are repeated, the
// first ones as well, unless their error is final, which these are:
//
//   - The URL can never be used ([wire.ErrURL]), or this node is closed.
//   - The application of either side refuses the other one, with ErrUnauthorized or ErrHandshake
//     ([Access].Accept, [Access].Credential).
//   - What the two nodes say of themselves does not fit: the version of the protocol, or the value
//     codecs (ErrHandshake).
//
// A final error ends the Connection at once, also later: its state is Lost then, its Err that
// error, and Reconnection.OnState is told. With Reconnection.Persist only the first kind is final.
// Everything else may be mended while this program runs, and is repeated: no error of TLS is final,
// be it an alert or a certificate, because either side may renew certificates and authorities; nor
// is a peer that speaks something else, as a balancer without a server does. [Connection.Outage]
// and the node's log say meanwhile what is wrong; Reconnection.GiveUp and life bound how long it is
// tried. The page [about reconnecting] has a table of errors.
//
// [about reconnecting]: https://github.com/asterisque-go/asterisque/blob/main/docs/reconnecting.md
func (n *Node) Connect(life context.Context, url string, how Reconnection) (*Connection, error) {
	if err := n.ready(); err != nil {
		return nil, err
	}
	if err := how.check(); err != nil {
		return nil, err
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

// check returns an error that names each duration that is too short, or nil.
func (r *Reconnection) check() error {
	var m misfits
	for _, t := range []struct {
		name  string
		value time.Duration
	}{{"First", r.First}, {"Most", r.Most}, {"GiveUp", r.GiveUp}} {
		if t.value > 0 {
			m.atLeast("Reconnection."+t.name, t.value, leastWait)
		}
	}
	return m.asError()
}
