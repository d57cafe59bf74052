package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/presence"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// Hosted is a node outside of the cluster that this node represents. Other nodes see it as a
// member, and reach it through NATS. All methods are safe for concurrent use.
type Hosted struct {
	cluster  *Cluster // fixed, as all up to draining
	member   Member
	self     *presence.Announcement
	ln       wire.Listener
	ctx      context.Context // ends with Close, with the Cluster, or when the node is replaced
	end      context.CancelCauseFunc
	draining chan struct{}

	running sync.WaitGroup // the goroutines; all end with ctx
	drain   sync.Once      // closes draining
	once    sync.Once      // Close
}

// clusterHosts are the nodes that a Cluster represents.
type clusterHosts struct {
	mu     sync.Mutex
	all    map[*Hosted]struct{} // created on first use; guarded by mu, as closed
	closed bool                 // no more nodes are added
}

// Host adds a node to the cluster that cannot join itself, such as one that connects to this
// program in another way. The Name, ID, Identity, Region, Version and Metadata of m apply, like
// those of [Config]; the node has no addresses. accept is called with each wire that other nodes
// dial to it, on a goroutine of its own, and has to close the wire.
//
// With [Config].TLS this side does TLS for the node, and its certificate has to prove the Identity
// of m.
//
// The node stays until Close, or Close of the Cluster. start bounds the wait for NATS. Errors are
// [ErrNameTaken], [ErrClosed], those of NATS, and those of an invalid m.
func (c *Cluster) Host(start context.Context, m Member, accept func(wire.Wire)) (*Hosted, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	cfg := Config{Name: m.Name, ID: m.ID, Identity: m.Identity, Region: m.Region, Version: m.Version, Metadata: m.Metadata, Replicas: 1}
	switch err := cfg.check(); {
	case m.Name == "" || m.ID == "":
		return nil, errors.New("cluster: a hosted node needs a name and an id")
	case err != nil:
		return nil, fmt.Errorf("cluster: a node cannot be shown: %w", err)
	}
	h := &Hosted{cluster: c, draining: make(chan struct{})}
	m.State, m.Since, m.Instance, m.Addresses = Present, time.Now().UTC().Round(time.Millisecond), rand.Text(), nil
	h.member, h.self = m, presence.Announce(c.presence(), m.entry())
	h.ctx, h.end = context.WithCancelCause(context.Background())
	if err := h.begin(start, accept); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// begin listens for the node, and then publishes its entry.
func (h *Hosted) begin(start context.Context, accept func(wire.Wire)) (err error) {
	c, m := h.cluster, h.member
	if err := h.self.Check(start); err != nil { // before wires for that node arrive here
		return err
	}
	h.ln, err = natswire.Listen(start, c.nc, c.cfg.meeting(m.Name, m.ID), c.cfg.TLS)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	h.running.Go(func() { h.serve(accept) }) // ends with the listener
	if err := h.self.Join(start); err != nil {
		return err
	}
	if !c.hosts.add(h) {
		return ErrClosed
	}
	h.running.Go(func() { // ends with h.ctx
		if err := h.self.Keep(h.ctx, h.draining); err != nil {
			h.end(err)
			h.ln.Close() // wires go to the node that has replaced it
		}
	})
	return nil
}

// serve passes the wires of the listener to accept.
func (h *Hosted) serve(accept func(wire.Wire)) {
	for {
		w, err := h.ln.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				h.end(fmt.Errorf("cluster: %w", err))
			}
			return
		}
		go accept(w) // ends when accept returns, which owns the Wire
	}
}

// Drain announces that the node drains.
func (h *Hosted) Drain() { h.drain.Do(func() { close(h.draining) }) }

// Done returns a channel that is closed when the node has left the cluster: see Err.
func (h *Hosted) Done() <-chan struct{} { return h.ctx.Done() }

// Err returns nil while the node is in the cluster, and then the reason why it is not: [ErrClosed],
// [ErrReplaced], or an error of NATS.
func (h *Hosted) Err() error { return context.Cause(h.ctx) }

// Close removes the node from the cluster. Accepted wires stay open. The announcement takes a
// second at most. Repeated calls return nil.
func (h *Hosted) Close() error {
	h.once.Do(func() {
		h.end(ErrClosed)
		if h.ln != nil {
			h.ln.Close()
		}
		h.running.Wait()
		h.cluster.hosts.remove(h)
		if h.cluster.nc.IsConnected() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			h.self.Leave(ctx)
		}
	})
	return nil
}

// add adds a node, unless hosts are closed.
func (hs *clusterHosts) add(h *Hosted) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.closed {
		return false
	}
	if hs.all == nil {
		hs.all = make(map[*Hosted]struct{})
		if c := h.cluster; c.self == nil { // a node with members has to look for lost ones
			// ends with c.ctx, after close
			c.running.Go(func() { presence.NewReaper(c.presence(), c.cfg.ID).Run(c.ctx) })
		}
	}
	hs.all[h] = struct{}{}
	return true
}

func (hs *clusterHosts) remove(h *Hosted) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	delete(hs.all, h)
}

// close closes all nodes at the same time, and rejects further ones.
func (hs *clusterHosts) close() {
	hs.mu.Lock()
	hs.closed = true
	var leaving sync.WaitGroup
	for h := range hs.all {
		leaving.Go(func() { h.Close() }) // takes a second at most
	}
	hs.mu.Unlock()
	leaving.Wait()
}

// Dial makes a Wire to a node of the cluster, as returned by [Cluster.Members]: by its addresses,
// or through NATS. With [Config].TLS the node has to prove the Identity of m. ctx bounds the wait.
// Dial is for programs that forward the Wire. To call the node, use [Cluster.Caller].
func (c *Cluster) Dial(ctx context.Context, m Member) (wire.Wire, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	ws := &peerRoutes{cluster: c, all: make(map[string]peerRoute)}
	w, err := ws.dial(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("cluster: dialling %s: %w", m, err)
	}
	return w, nil
}

// IsSecret reports whether the two ends of a Wire through NATS do TLS with each other, and nodes
// thus prove their identity.
func (c *Cluster) IsSecret() bool { return c.cfg.TLS != nil }
