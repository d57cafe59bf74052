package exchange

import (
	"context"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/wire"
)

// follow watches the nodes of a name in the cluster, until ctx ends.
func (x *Exchange) follow(ctx context.Context, name string, g *nodeGroup) {
	for change, err := range x.cfg.Cluster.Watch(ctx, name) {
		switch {
		case err != nil:
			x.cfg.Logger.Warn("exchange: the nodes in the cluster cannot be watched, the last ones stay", "name", name, "error", err)
		case change.Kind == cluster.Left || change.Kind == cluster.Lost:
			x.nodes.setRemote(ctx, g, change.Member.ID, nil)
		default:
			m := memberOf(change.Member)
			x.nodes.setRemote(ctx, g, m.ID, &m)
		}
	}
}

func memberOf(m cluster.Member) relayproto.Member {
	return relayproto.Member{
		Name: m.Name, ID: m.ID, Instance: m.Instance, State: relayproto.State(m.State), Since: m.Since,
		Identity: m.Identity, Region: m.Region, Version: m.Version, Metadata: m.Metadata, Durable: m.Durable,
	}
}

// setRemote stores the state of a node in the cluster, unless ctx has ended; nil: it is gone.
func (n *nodeRegistry) setRemote(ctx context.Context, g *nodeGroup, id string, m *relayproto.Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return // another watch has replaced this one
	}
	if n.version++; m == nil {
		delete(g.remote, id)
	} else {
		g.remote[id] = nodeVersion{*m, n.version}
	}
	g.changed.Signal()
}

// reachRemote makes the Wire to a node of the cluster.
func (x *Exchange) reachRemote(ctx context.Context, from string, t relayproto.Target) (*farSide, error) {
	if x.cfg.Cluster == nil || !relayproto.IsToken(t.Name) {
		return nil, x.nobody(t)
	}
	members, err := x.cfg.Cluster.Members(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.ID == t.ID {
			return x.dialMember(ctx, from, m, t)
		}
	}
	if m, ok := x.nodes.foreign(t.Name, t.ID); ok {
		return x.dialMember(ctx, from, cluster.Member{Name: m.Name, ID: m.ID, Instance: m.Instance, Identity: m.Identity}, t)
	}
	return nil, x.nobody(t)
}

// dialMember makes the Wire to a member of the cluster.
func (x *Exchange) dialMember(ctx context.Context, from string, m cluster.Member, t relayproto.Target) (*farSide, error) {
	if !x.policy.allows(from, m.Identity) {
		return nil, x.nobody(t)
	}
	w, err := x.cfg.Cluster.Dial(ctx, m)
	if err != nil {
		return nil, err
	}
	return &farSide{wire: w, private: wire.IsPrivate(w), end: func() {}}, nil
}
