package asterisque

import (
	"context"
	"errors"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/relay"
	"github.com/asterisque-go/asterisque/wire"
)

// A peer that comes back to another node than the one which has its session: this one carries the
// frames between the two. See Resume.Elsewhere.

// ErrElsewhere is what [Node.Accept] returns when the session of a Wire goes on at another node, to
// which this one relays it.
var ErrElsewhere error = errElsewhere

var (
	errElsewhere = codec.ErrUnavailable.Withf("the session goes on at another node, to which its wire is relayed: see Resume.Elsewhere")
	errNotHere   = codec.ErrUnavailable.Withf("the session that was relayed here cannot be resumed, and no other one begins this way")
)

// reach returns a Wire to the node that has the session of r, or nil if there is none.
func (c *config) reach(ctx context.Context, r SessionRecord, p Peer) (wire.Wire, error) {
	if c.elsewhere == nil {
		return nil, nil
	}
	w, err := ask(ctx, &c.asks.elsewhere, func() (wire.Wire, error) {
		return c.elsewhere(ctx, r, p)
	}, func(w wire.Wire) {
		if w != nil {
			w.Close()
		}
	})
	var told *Abort
	switch {
	case err == nil || errors.As(err, &told):
		return w, err
	}
	c.log.Warn("session cannot be relayed", "node", r.Node, "session", r.Session.short(), "addr", p.RemoteAddr, "error", err)
	told = codec.ErrUnavailable.Withf("the node that has the session cannot be reached")
	told.Cause = err
	return nil, told
}

// passOn lets the other node read what the peer has said.
func (h *handshake) passOn(ctx context.Context, to wire.Wire) error {
	if refused := h.place.carry(); refused != nil {
		to.Close()
		return h.refuse(refused)
	}
	stop := context.AfterFunc(ctx, func() { guard.Run(h.log, "wire", func() { to.Close() }) })
	err := to.WriteFrames([][]byte{h.hello})
	if !stop() || err != nil {
		to.Close()
		return h.refuse(codec.ErrUnavailable.Withf("the node that has the session cannot be reached: %v", err))
	}
	if !h.move(agrees) {
		to.Close()
		return h.failed(ctx, errTooLate)
	}
	return nil
}

// relaying is the two Wires of a session that goes on at another node.
type relaying struct {
	node *Node
	near relay.Side
	far  relay.Side
	by   *handshake
	id   SessionID
}

// relay carries frames between the peer of a handshake and the node that goes on with its session,
// until that ends. The error is ErrElsewhere, or that of a node which is about to go.
func (n *Node) relay(h *handshake, a *accepted) error {
	r := &relaying{
		node: n, by: h, id: a.session,
		near: relay.Side{Wire: h.w, Largest: n.cfg.plan.Largest + outbox.HeadSize},
		far:  relay.Side{Wire: a.elsewhere, Largest: a.promises.maxFrame},
	}
	n.mu.Lock()
	open := n.sessions != nil && n.relays.add(r)
	if open {
		n.accepts.Go(r.run) // ends with either Wire, or by end
	}
	n.mu.Unlock()
	switch {
	case !open:
		r.end()
		return errNodeClosed
	case n.drain.hasBegun():
		r.end() // Shutdown may not have found it
	}
	return errElsewhere
}

func (r *relaying) run() {
	log := r.node.cfg.log
	log.Info("session is relayed", "session", r.id.short(), "addr", r.by.from)
	err := relay.Between(log, r.near, r.far)
	log.Info("session is relayed no more", "session", r.id.short(), "addr", r.by.from, "error", err)
	r.node.relays.remove(r)
	r.by.place.Leave()
}

// end ends the relay soon. The peer comes back, to a node that is there.
func (r *relaying) end() {
	for _, w := range []wire.Wire{r.near.Wire, r.far.Wire} {
		guard.Apart(r.node.cfg.log, w, func() { w.Close() })
	}
}
