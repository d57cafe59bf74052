package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// way is how a node was reached: by which of its addresses, or through NATS, which is the last one.
type way struct {
	instance string // of the node
	index    int
	at       time.Time
}

// hasty is how soon a Wire is dialled again that was no good: somebody else may listen at that
// address by now, and then another way is taken.
const hasty = 5 * time.Second

// dial makes the Wire to a node: by its addresses in their order, and then through NATS.
func (r *route) dial(ctx context.Context, a pool.Address) (wire.Wire, error) {
	m, first, ok := r.begin(a.ID)
	if !ok {
		return nil, ErrNoMember // it has left, and the Pool is about to know
	}
	var why []error
	ways := len(m.Addresses) + 1
	for i := range ways {
		k := (first + i) % ways
		w, err := r.take(ctx, m, k, i == ways-1)
		if err == nil {
			r.note(m, k)
			return w, nil
		}
		why = append(why, err)
	}
	err := errors.Join(why...)
	if errors.Is(err, natswire.ErrNobody) {
		r.cluster.tell(ctx, m)
	}
	return nil, err
}

// begin returns what is known of a node, and which way is to be taken first.
func (r *route) begin(id string) (m Member, first int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok = r.members[id]
	if w, ok := r.ways[id]; ok && w.instance == m.Instance && time.Since(w.at) < hasty {
		first = (w.index + 1) % (len(m.Addresses) + 1)
	}
	return m, first, ok
}

// note notes the way that was taken.
func (r *route) note(m Member, k int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.members[m.ID]; ok {
		r.ways[m.ID] = way{m.Instance, k, time.Now()}
	}
}

// take takes one way. Unless it is the last one, it has half of the time that is left.
func (r *route) take(ctx context.Context, m Member, k int, last bool) (wire.Wire, error) {
	if at, ok := ctx.Deadline(); ok && !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(at)/2)
		defer cancel()
	}
	secure, nc := r.tls(m), r.cluster.nc
	switch {
	case k < len(m.Addresses):
	case !nc.IsConnected():
		return nil, natswire.ErrDisconnected
	default:
		return natswire.Dial(ctx, nc, r.cluster.meeting(m.Name, m.ID), secure)
	}
	w, err := wire.Dial(ctx, m.Addresses[k], wire.Options{TLS: secure})
	return w, transport.HideURL(err, m.Addresses[k])
}

// tls returns what governs TLS with a node, in which it proves its identity; nil: there is none.
func (r *route) tls(m Member) *tls.Config {
	own := r.cluster.cfg.TLS
	if own == nil {
		return nil
	}
	secure := own.Clone()
	secure.ServerName = defaulted(r.identity, m.Identity)
	return secure
}

// tell lets everybody know that a node is lost, of which NATS knows nothing and which cannot be
// reached otherwise. A node that is there after all says so with its next sign of life.
func (c *Cluster) tell(ctx context.Context, m Member) {
	if m.revision == 0 || c.silent.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second) // somebody waits for a Wire
	defer cancel()
	err := c.buckets.nodes.Delete(ctx, m.key(), jetstream.LastRevision(m.revision))
	if err != nil { // somebody else was faster, or the reaper will be
		c.silent.CompareAndSwap(false, denied(c.nc, entrySubject(c.buckets.nodes, m.key())))
		return
	}
	c.buckets.alive.Delete(ctx, m.key())
	c.node.Logger().Info("cluster: a node is lost", "node", m.key())
}

// describe names a node for people.
func (m Member) String() string { return fmt.Sprintf("%s %s", m.Name, m.ID) }
