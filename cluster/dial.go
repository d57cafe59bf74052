package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/presence"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// peerRoutes are the routes to nodes: by their addresses, or through NATS.
type peerRoutes struct {
	cluster  *Cluster // fixed, as identity is
	identity string   // identity that nodes have to prove; empty: the one that each announces

	mu  sync.Mutex
	all map[string]peerRoute // by id, of nodes that are called; guarded by mu
}

// peerRoute is the last route to a node.
type peerRoute struct {
	instance string    // of the node
	index    int       // of its addresses; the index after the last is NATS
	at       time.Time // time of the last dial; zero: none
	nobody   time.Time // time since which NATS reports no responder; zero: it does not
}

const (
	// hasty is the time after a dial within which the next dial uses another route: the last Wire
	// was useless, and another program may listen at that address by now.
	hasty = 5 * time.Second

	// doubt is the time within which a node without addresses may still reconnect to NATS.
	doubt = 3 * time.Second
)

// dial makes the Wire to a node: by its addresses in their order, and then through NATS.
func (ws *peerRoutes) dial(ctx context.Context, m Member) (wire.Wire, error) {
	var why []error
	first, all := ws.first(m), len(m.Addresses)+1
	for i := range all {
		k := (first + i) % all
		w, err := ws.take(ctx, m, k, i == all-1)
		if err == nil {
			ws.note(m, peerRoute{index: k, at: time.Now()})
			return w, nil
		}
		why = append(why, err)
	}
	err := errors.Join(why...)
	if errors.Is(err, natswire.ErrNobody) && ws.isLost(m) {
		ws.cluster.reporter.Report(ctx, m.entry())
	}
	return nil, err
}

// first returns the index of the route to try first.
func (ws *peerRoutes) first(m Member) int {
	w := ws.of(m)
	if time.Since(w.at) < hasty {
		return (w.index + 1) % (len(m.Addresses) + 1)
	}
	return 0
}

// of returns the last route to a node, for the present run of the node.
func (ws *peerRoutes) of(m Member) peerRoute {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.all[m.ID]; w.instance == m.Instance {
		return w
	}
	return peerRoute{}
}

func (ws *peerRoutes) note(m Member, w peerRoute) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.instance = m.Instance
	ws.all[m.ID] = w
}

// keep removes the routes to all other nodes.
func (ws *peerRoutes) keep(members map[string]Member) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	maps.DeleteFunc(ws.all, func(id string, _ peerRoute) bool { _, ok := members[id]; return !ok })
}

// isLost reports whether a node without a responder in NATS is lost. A node with addresses is lost
// at once, as those do not answer either. A node without addresses is lost after doubt.
func (ws *peerRoutes) isLost(m Member) bool {
	w := ws.of(m)
	if w.nobody.IsZero() {
		w.nobody = time.Now()
		ws.note(m, w)
	}
	return len(m.Addresses) > 0 || time.Since(w.nobody) >= doubt
}

// take tries one route. Unless it is the last one, it has half of the remaining time.
func (ws *peerRoutes) take(ctx context.Context, m Member, k int, last bool) (wire.Wire, error) {
	if at, ok := ctx.Deadline(); ok && !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(at)/2)
		defer cancel()
	}
	secure, nc := ws.tls(m), ws.cluster.nc
	switch {
	case k < len(m.Addresses):
	case !nc.IsConnected():
		return nil, natswire.ErrDisconnected
	default:
		return natswire.Dial(ctx, nc, ws.cluster.cfg.meeting(m.Name, m.ID), secure)
	}
	w, err := wire.Dial(ctx, m.Addresses[k], wire.Options{TLS: secure})
	return w, transport.HideURL(err, m.Addresses[k])
}

// tls returns the TLS configuration for a node, by which the node proves its identity; nil: no TLS.
func (ws *peerRoutes) tls(m Member) *tls.Config {
	own := ws.cluster.cfg.TLS
	if own == nil {
		return nil
	}
	secure := own.Clone()
	secure.ServerName = defaulted(ws.identity, m.Identity)
	return secure
}

// nobodyAt returns an error unless NATS still has no responder for a node.
func (c *Cluster) nobodyAt(ctx context.Context, m presence.Member) error {
	w, err := natswire.Dial(ctx, c.nc, c.cfg.meeting(m.Name, m.ID), nil)
	switch {
	case err == nil:
		w.Close()
		return errors.New("cluster: the node is there")
	case errors.Is(err, natswire.ErrNobody):
		return nil
	}
	return err
}
