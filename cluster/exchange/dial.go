package exchange

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/internal/forward"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
)

// dial relays a session for as long as the call lasts.
func (x *Exchange) dial(ctx context.Context, t relayproto.Target, p *asterisque.Pipe[relayproto.Answer, struct{}]) (none struct{}, err error) {
	from, err := x.registered(ctx)
	if err != nil {
		return none, err
	}
	leave, err := x.enter(from)
	if err != nil {
		return none, err
	}
	defer leave()
	far, err := x.reach(ctx, from, t)
	if err != nil {
		return none, err
	}
	defer far.leave()
	if err := p.Send(ctx, relayproto.Answer{Private: far.private}); err != nil {
		return none, err
	}
	near := tunnel.NewConn(p.Untyped(), from.session)
	if err := x.relay(wire.FromConn(near), far.wire); err != nil {
		return none, asterisque.ErrUnavailable.Withf("the node %s %s is gone, or what came cannot be relayed: %v", t.Name, t.ID, err)
	}
	return none, near.Wait(ctx)
}

// relayPatience is how long a side of a relay may block writes, like the default of Timeouts.Write.
const relayPatience = 5 * time.Minute

// relay carries frames between two Wires until either ends, and returns the cause, or nil for a
// regular end.
func (x *Exchange) relay(near, far wire.Wire) error {
	x.relayed.Add(1)
	return forward.Between(x.cfg.Logger, relayPatience,
		forward.Side{Wire: near, Largest: relayproto.Largest}, forward.Side{Wire: far, Largest: relayproto.Largest})
}

// enter acquires the slots of a relayed session that a node begins.
func (x *Exchange) enter(from *registeredNode) (leave func(), err error) {
	switch {
	case !from.relays.enter():
		return nil, full("this node has %d relayed sessions, and no more are allowed at once", from.relays.most)
	case !x.sessions.enter():
		from.relays.leave()
		return nil, full("the exchange relays %d sessions, and no more are allowed at once", x.sessions.most)
	}
	return func() {
		x.sessions.leave()
		from.relays.leave()
	}, nil
}

// farSide is the far side of a relayed session.
type farSide struct {
	wire    wire.Wire
	private bool
	end     func() // ends its call, once the Wire is closed
}

// leave releases the far side, also if nothing was relayed.
func (f *farSide) leave() {
	f.wire.Close()
	f.end()
}

// reach makes the Wire to a dialled node.
func (x *Exchange) reach(ctx context.Context, from *registeredNode, t relayproto.Target) (*farSide, error) {
	to := x.nodes.find(t.Name, t.ID)
	if to == nil || !x.policy.allows(from.member.Identity, to.member.Identity) {
		// A node that the policy forbids is looked up in the cluster like an absent one, so that
		// the caller cannot distinguish them.
		return x.reachRemote(ctx, from.member.Identity, t)
	}
	return x.visit(ctx, relayproto.Visitor{
		Name: from.member.Name, ID: from.member.ID, Identity: from.member.Identity,
		Private: relayproto.IsPrivate(from.session),
	}, to)
}

// nobody returns the error for an absent or forbidden node.
func (x *Exchange) nobody(t relayproto.Target) error {
	x.refused.Add(1)
	return relayproto.ErrNoMember.Withf("no node %.64s %.64s is at the exchange that this node may reach", t.Name, t.ID)
}

// visit asks a registered node to accept a Wire, within the time limit.
func (x *Exchange) visit(ctx context.Context, v relayproto.Visitor, to *registeredNode) (*farSide, error) {
	if !to.relays.enter() {
		return nil, full("the node %s %s has %d relayed sessions, and no more are allowed at once", to.member.Name, to.member.ID, to.relays.most)
	}
	call, end, err := x.knock(ctx, v, to)
	if err != nil {
		to.relays.leave()
		return nil, asterisque.ErrUnavailable.Withf("the node %s %s does not take the session: %v", to.member.Name, to.member.ID, err)
	}
	return &farSide{
		wire:    wire.FromConn(tunnel.NewConn(call.Untyped(), to.session)),
		private: relayproto.IsPrivate(to.session),
		end: func() {
			awaitEnd(call.Untyped().Done(), x.cfg.Answer)
			end()
			to.relays.leave()
		},
	}, nil
}

// accepting is a call by which a node accepts a Wire.
type accepting = asterisque.StreamCall[struct{}, relayproto.Answer, struct{}]

// knock asks a node to accept a Wire, and waits for its answer. end ends the call.
func (x *Exchange) knock(ctx context.Context, v relayproto.Visitor, to *registeredNode) (call *accepting, end context.CancelFunc, err error) {
	ctx, late := context.WithTimeout(ctx, x.cfg.Answer)
	defer late()
	// not the context of the handler: this is not a nested call, which has other limits
	life, end := context.WithCancel(x.ctx)
	inTime := context.AfterFunc(ctx, end)
	call, err = relayproto.Accept.Open(life, to.session, v)
	if err == nil {
		_, err = call.Recv(ctx)
	}
	if !inTime() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
	}
	return call, end, err
}

// awaitEnd waits for the end of a call, at most for most.
func awaitEnd(over <-chan struct{}, most time.Duration) {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
	}
}
