// Package localpeer connects a peer within the program to a node. Calls that arrive through NATS,
// as requests or as posted calls, are made by such a [Peer]: the node serves them like the calls of
// any other peer, with its interceptors, limits and statistics. The network of its address is
// "mem", which peers outside of the program never have.
package localpeer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
)

// peerAgain is the delay before the peer reconnects. It is short, since no network is involved.
const peerAgain = 10 * time.Millisecond

// ErrLeaving is the error of calls that the end of their peer has cut off.
var ErrLeaving = codec.ErrUnavailable.Withf("the node leaves the cluster: the call may have run or not")

// Peer is a peer of a node, within the program, for calls that arrive through NATS.
type Peer struct {
	node *asterisque.Node // the served node; fixed, as own and conn are
	own  *asterisque.Node
	conn *asterisque.Connection

	life     context.Context // ends with the peer, or if the node rejects it at the start
	end      context.CancelCauseFunc
	starting atomic.Bool // life ends if the node rejects the peer
}

// Connect connects a peer with an id and a codec to a node. ctx bounds the wait. If the node
// rejects the peer, the error has the cause.
func Connect(ctx context.Context, node *asterisque.Node, id string, values codec.Values) (*Peer, error) {
	p := &Peer{
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
		p.Close()
		return nil, fmt.Errorf("the node does not let the peer %q in that calls its functions for NATS: %w", id, err)
	}
	return p, nil
}

// dial makes a Wire to the node.
func (p *Peer) dial(context.Context) (wire.Wire, error) {
	ours, theirs := wire.Pipe()
	go func() { // ends with the handshake, for which the node has a timeout, or with life
		_, err := p.node.Accept(p.life, theirs)
		if err != nil && p.starting.Load() {
			p.end(err) // the connection itself would retry
		}
	}()
	return ours, nil
}

// Connection returns the connection on which the peer makes its calls.
func (p *Peer) Connection() *asterisque.Connection { return p.conn }

// Context returns a context that ends with the peer.
func (p *Peer) Context() context.Context { return p.life }

// Close ends the peer and its calls.
func (p *Peer) Close() {
	p.end(ErrLeaving)
	if p.conn != nil {
		p.conn.Close()
	}
	p.own.Close()
}
