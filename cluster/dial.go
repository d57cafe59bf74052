package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// ways is how nodes are reached: by their addresses, or through NATS.
type ways struct {
	cluster  *Cluster // these are fixed
	identity string   // which nodes have to prove; empty: the one that each says it has

	mu  sync.Mutex
	all map[string]way // by id; guarded by mu; those of nodes that are called
}

// way is how a node was reached last, or not.
type way struct {
	instance string    // of the node
	index    int       // of its addresses; NATS is behind the last one
	at       time.Time // when that was; zero: not yet
	nobody   time.Time // since when NATS says that nobody is there; zero: it does not
}

const (
	// hasty is how soon a Wire is dialled again that was no good: somebody else may listen at that
	// address by now, and then another way is taken.
	hasty = 5 * time.Second

	// doubt is how long a node without addresses is believed to connect to NATS again.
	doubt = 3 * time.Second
)

// dial makes the Wire to a node: by its addresses in their order, and then through NATS.
func (ws *ways) dial(ctx context.Context, m Member) (wire.Wire, error) {
	var why []error
	first, all := ws.first(m), len(m.Addresses)+1
	for i := range all {
		k := (first + i) % all
		w, err := ws.take(ctx, m, k, i == all-1)
		if err == nil {
			ws.note(m, way{index: k, at: time.Now()})
			return w, nil
		}
		why = append(why, err)
	}
	err := errors.Join(why...)
	if errors.Is(err, natswire.ErrNobody) && ws.isLost(m) {
		ws.cluster.tell(ctx, m)
	}
	return nil, err
}

// first returns which way is to be taken first.
func (ws *ways) first(m Member) int {
	w := ws.of(m)
	if time.Since(w.at) < hasty {
		return (w.index + 1) % (len(m.Addresses) + 1)
	}
	return 0
}

// of returns the way to a node, in this life of it.
func (ws *ways) of(m Member) way {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.all[m.ID]; w.instance == m.Instance {
		return w
	}
	return way{}
}

func (ws *ways) note(m Member, w way) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.instance = m.Instance
	ws.all[m.ID] = w
}

// keep forgets the ways to others.
func (ws *ways) keep(members map[string]Member) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	maps.DeleteFunc(ws.all, func(id string, _ way) bool { _, ok := members[id]; return !ok })
}

// isLost reports whether a node is lost that nobody in NATS answers for: at once if it does not
// answer at its addresses either.
func (ws *ways) isLost(m Member) bool {
	w := ws.of(m)
	if w.nobody.IsZero() {
		w.nobody = time.Now()
		ws.note(m, w)
	}
	return len(m.Addresses) > 0 || time.Since(w.nobody) >= doubt
}

// take takes one way. Unless it is the last one, it has half of the time that is left.
func (ws *ways) take(ctx context.Context, m Member, k int, last bool) (wire.Wire, error) {
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
		return natswire.Dial(ctx, nc, ws.cluster.meeting(m.Name, m.ID), secure)
	}
	w, err := wire.Dial(ctx, m.Addresses[k], wire.Options{TLS: secure})
	return w, transport.HideURL(err, m.Addresses[k])
}

// tls returns what governs TLS with a node, in which it proves its identity; nil: there is none.
func (ws *ways) tls(m Member) *tls.Config {
	own := ws.cluster.cfg.TLS
	if own == nil {
		return nil
	}
	secure := own.Clone()
	secure.ServerName = defaulted(ws.identity, m.Identity)
	return secure
}

// tell lets everybody know that a node is lost, of which NATS knows nothing and which cannot be
// reached otherwise. A node that is there after all says so with its next sign of life: the last
// is deleted first, so that it finds none, whatever becomes of the rest.
func (c *Cluster) tell(ctx context.Context, m Member) {
	if m.revision == 0 || c.silent.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second) // somebody waits for a Wire
	defer cancel()
	if err := c.takeForLost(ctx, m); err != nil { // it is there, or the reaper finds it
		for _, kv := range []jetstream.KeyValue{c.buckets.alive, c.buckets.nodes} {
			subject := entrySubject(kv, m.key())
			if denied(c.nc, subject) || denied(c.nc, "$JS.API.DIRECT.GET.KV_"+kv.Bucket()+"."+subject) {
				c.silent.Store(true)
			}
		}
		return
	}
	c.node.Logger().Info("cluster: a node is lost", "node", m.key())
}

// takeForLost deletes the entries of a node, unless it is there by now.
func (c *Cluster) takeForLost(ctx context.Context, m Member) error {
	last, err := c.buckets.alive.Get(ctx, m.key())
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound): // it has been silent for long
	case err != nil:
		return err
	default:
		if err := c.nobodyAt(ctx, m); err != nil {
			return err
		}
		if err := c.buckets.alive.Delete(ctx, m.key(), jetstream.LastRevision(last.Revision())); err != nil {
			return err
		}
	}
	return c.buckets.nodes.Delete(ctx, m.key(), jetstream.LastRevision(m.revision))
}

// nobodyAt returns an error unless NATS still knows nothing of a node: it may have connected again
// since it was dialled, and have given its sign of life before that was looked at.
func (c *Cluster) nobodyAt(ctx context.Context, m Member) error {
	w, err := natswire.Dial(ctx, c.nc, c.meeting(m.Name, m.ID), nil)
	switch {
	case err == nil:
		w.Close()
		return errors.New("cluster: the node is there")
	case errors.Is(err, natswire.ErrNobody):
		return nil
	}
	return err
}
