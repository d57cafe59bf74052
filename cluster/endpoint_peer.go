package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
)

// endpointPeerID is the id of the peer of a node that makes the calls of its endpoints.
const endpointPeerID = "nats endpoint"

// peerAgain is the delay before the peer reconnects. It is short, since no network is involved.
const peerAgain = 10 * time.Millisecond

// endpointPeer is a peer of a node, within the program, for calls that arrive through NATS.
type endpointPeer struct {
	node *asterisque.Node // the served node; fixed, as own and conn are
	own  *asterisque.Node
	conn *asterisque.Connection

	life     context.Context // ends with the peer, or if the node rejects it at the start
	end      context.CancelCauseFunc
	starting atomic.Bool // life ends if the node rejects the peer
}

// newPeer connects a peer with an id and a codec to a node. If the node rejects it, the error has
// the cause.
func newPeer(ctx context.Context, node *asterisque.Node, id string, values codec.Values) (*endpointPeer, error) {
	p := &endpointPeer{
		node: node,
		own:  asterisque.NewNode(asterisque.WithID(id), asterisque.WithCodecs(values), asterisque.WithLogger(node.Logger())),
	}
	p.life, p.end = context.WithCancelCause(context.Background())
	p.starting.Store(true)
	stop := context.AfterFunc(ctx, func() { p.end(context.Cause(ctx)) })
	conn, err := p.own.Connect(p.life, "", asterisque.ReconnectConfig{Dial: p.dial, RetryFatal: true, First: peerAgain})
	p.starting.Store(false)
	stop()
	p.conn = conn
	if why := context.Cause(p.life); why != nil {
		err = why
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("the node does not let the peer %q in that calls its functions for NATS: %w", id, err)
	}
	return p, nil
}

// dial makes a Wire to the node.
func (p *endpointPeer) dial(context.Context) (wire.Wire, error) {
	ours, theirs := wire.Pipe()
	go func() { // ends with the handshake, for which the node has a timeout, or with life
		_, err := p.node.Accept(p.life, theirs)
		if err != nil && p.starting.Load() {
			p.end(err) // the connection itself would retry
		}
	}()
	return ours, nil
}

// close ends the peer and its calls.
func (p *endpointPeer) close() {
	p.end(errLeaving)
	if p.conn != nil {
		p.conn.Close()
	}
	p.own.Close()
}
