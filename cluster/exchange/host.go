package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
)

// patience is the time limit for NATS to show a node. After it, the node is registered without
// being shown, and is shown later.
const patience = 5 * time.Second

// show makes a node that has registered visible in the cluster, if nodes there may reach it, until
// hide is called. It returns the error of a name that another identity has.
func (x *Exchange) show(ctx context.Context, r *registeredNode) (hide func(), err error) {
	r.awaitOusted(ctx)
	if x.cfg.Cluster == nil || r.member.Name == "" || !x.shown(r.member.Identity) {
		return func() {}, nil
	}
	h, err := x.host(ctx, r)
	if errors.Is(err, cluster.ErrNameTaken) {
		return nil, relayproto.ErrNameTaken.Withf("in the cluster: %v", err)
	}
	ctx, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { x.keepShown(ctx, r, h) }) // ends with ctx
	return func() {
		stop()
		keeping.Wait()
	}, nil
}

// awaitOusted waits until the nodes that this one has displaced are hidden: until then the name is
// theirs in the cluster.
func (r *registeredNode) awaitOusted(ctx context.Context) {
	for _, o := range r.ousted {
		select {
		case <-o.gone:
		case <-ctx.Done():
			return
		}
	}
	r.ousted = nil // releases the chain of displaced nodes
}

// shown reports whether a node in the cluster may reach a node of an identity. Without TLS no node
// there has a proven identity.
func (x *Exchange) shown(identity string) bool {
	if !x.cfg.Cluster.IsSecret() {
		return x.policy.allows("", identity)
	}
	return x.policy.reachable(identity)
}

// host shows a node in the cluster. If that fails, it logs the error, and returns it with nil.
func (x *Exchange) host(ctx context.Context, r *registeredNode) (*cluster.Hosted, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m := &r.member // without its state, which may change
	h, err := x.cfg.Cluster.Host(ctx, cluster.Member{
		Name: m.Name, ID: m.ID, Identity: m.Identity, Region: m.Region, Version: m.Version, Metadata: m.Metadata,
	}, func(w wire.Wire) { x.takeInbound(r, w) })
	if err != nil {
		x.cfg.Logger.Warn("exchange: a node cannot be shown in the cluster", "node", m.Name+" "+m.ID, "error", err)
	}
	return h, err
}

// keepShown keeps a node visible in the cluster until ctx ends. If another node replaces it there,
// at another exchange, its registration here ends.
func (x *Exchange) keepShown(ctx context.Context, r *registeredNode, h *cluster.Hosted) {
	for h == nil {
		if !wait.HoldOff(ctx, patience) {
			return
		}
		var err error
		if h, err = x.host(ctx, r); errors.Is(err, cluster.ErrNameTaken) {
			r.end(relayproto.ErrNameTaken.Withf("in the cluster: %v", err))
			return
		}
	}
	defer h.Close()
	draining := r.draining
	for {
		select {
		case <-draining:
			h.Drain()
			draining = nil
		case <-h.Done():
			r.end(replaced(h.Err()))
			return
		case <-ctx.Done():
			return
		}
	}
}

// replaced returns the error for a node that has lost its place in the cluster.
func replaced(err error) error {
	if errors.Is(err, cluster.ErrReplaced) {
		return relayproto.ErrReplaced.Withf("in the cluster: %v", err)
	}
	return fmt.Errorf("exchange: the node is in the cluster no more: %w", err)
}
