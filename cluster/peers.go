package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/presence"
	"github.com/asterisque-go/asterisque/wire"
)

// peerCallers are the nodes that are called as holders of keys. All keys of a node share one
// session. These nodes, which may be many, are not watched: when one is dialled, its entry is read.
type peerCallers struct {
	mu  sync.Mutex
	all map[string]*peerCaller // by key in the buckets; guarded by mu
}

func newPeers() *peerCallers { return &peerCallers{all: make(map[string]*peerCaller)} }

const (
	// mostPeers is the maximum number of connected nodes. Beyond it, the least recently used one is
	// closed.
	mostPeers = 1024

	// seeOff is the time limit for the running calls of a node that is closed.
	seeOff = time.Minute

	// comeBack is how long a call waits for an unreachable node, before another node may hold the
	// key.
	comeBack = time.Second
)

// peerCaller is a Caller for one node.
type peerCaller struct {
	name Member // fixed, as conn is; its name and id alone
	conn *asterisque.Connection

	used time.Time // guarded by peerCallers.mu
}

// at returns the Caller for a node.
func (ps *peerCallers) at(c *Cluster, h Holder) (asterisque.Caller, error) {
	member := Member{Name: h.Name, ID: h.Node}
	if !kv.IsToken(h.Name) || !kv.IsToken(h.Node) {
		return nil, asterisque.ErrUnavailable.Withf("the node that holds the key has no name, and cannot be called: %q", member)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[member.key()]
	if p == nil {
		conn, err := c.connectTo(member)
		if err != nil {
			return nil, err
		}
		p = &peerCaller{name: member, conn: conn}
		ps.all[member.key()] = p
		ps.boundLocked(c)
	}
	p.used = time.Now()
	return p, nil
}

// connectTo returns a connection to a node. Each dial reads the node's entry.
func (c *Cluster) connectTo(member Member) (*asterisque.Connection, error) {
	ws := &peerRoutes{cluster: c, all: make(map[string]peerRoute)}
	key := member.key()
	return c.node.Connect(c.ctx, "", asterisque.ReconnectConfig{
		Background: true, RetryFatal: true, PeerID: member.ID,
		Dial: func(ctx context.Context) (wire.Wire, error) {
			e, err := c.buckets.nodes.Get(ctx, key)
			if err != nil {
				return nil, fmt.Errorf("reading the entry of %s: %w", member, err)
			}
			m, err := presence.Decode(e)
			if err != nil {
				return nil, err
			}
			return ws.dial(ctx, memberOf(m))
		},
	})
}

// boundLocked closes one node if there are too many. A holder that still has its Caller looks the
// key up again.
func (ps *peerCallers) boundLocked(c *Cluster) {
	if len(ps.all) <= mostPeers {
		return
	}
	var oldest *peerCaller
	for _, p := range ps.all {
		if !p.used.IsZero() && (oldest == nil || p.used.Before(oldest.used)) {
			oldest = p
		}
	}
	delete(ps.all, oldest.name.key())
	c.running.Go(func() { // ends with the calls, or with c.ctx
		ctx, cancel := context.WithTimeout(c.ctx, seeOff)
		defer cancel()
		oldest.conn.Shutdown(ctx)
	})
}

// Invoke implements asterisque.Caller. It waits only briefly until the node can be reached: another
// node may hold the key soon.
func (p *peerCaller) Invoke(ctx context.Context, c *asterisque.Call) error {
	if c.Durable() { // the connection resumes it
		return p.conn.Invoke(ctx, c)
	}
	choice, err := p.choose(ctx, c)
	if err != nil {
		return c.Refuse(err)
	}
	err = choice.Session.Invoke(ctx, c)
	p.conn.Chosen(choice, err)
	return err
}

// choose returns the session with the node, once there is one.
func (p *peerCaller) choose(ctx context.Context, c *asterisque.Call) (asterisque.Choice, error) {
	late := time.NewTimer(comeBack)
	defer late.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		choice, ok := p.conn.Choose()
		if ok {
			return choice, nil
		}
		if c.FailFast() {
			return choice, p.unreachable()
		}
		select {
		case <-again.C:
		case <-late.C:
			return choice, p.unreachable()
		case <-ctx.Done():
			return choice, p.unreachable()
		}
	}
}

func (p *peerCaller) unreachable() error {
	a := asterisque.ErrUnavailable.Withf("the node %s, which holds the key, cannot be reached now", p.name)
	if o := p.conn.Outage(); o != nil {
		a.Cause = o
	}
	return a
}
