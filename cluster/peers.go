package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
)

// peers are the nodes that are called as those who hold some key, by id: all keys of a node share
// one session.
type peers struct {
	mu  sync.Mutex
	all map[string]*peer // guarded by mu
}

func newPeers() *peers { return &peers{all: make(map[string]*peer)} }

const (
	// mostPeers is how many nodes stay connected. Beyond, the one that was not looked up for
	// longest goes.
	mostPeers = 1024

	// seeOff is how long the calls have that run on a node which goes.
	seeOff = time.Minute

	// comeBack is how long a call waits for a node that cannot be reached, before somebody else may
	// hold the key.
	comeBack = time.Second
)

// peer is a Caller for one node.
type peer struct {
	id   string // these are fixed
	pool *pool.Pool

	used time.Time // guarded by mu of peers
}

// at returns the Caller for a node.
func (h *peers) at(c *Cluster, id string) (asterisque.Caller, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.all[id]
	if n == nil {
		p, err := c.At(c.ctx, id)
		if err != nil {
			return nil, err
		}
		n = &peer{id: id, pool: p}
		h.all[id] = n
		h.boundLocked(c)
	}
	n.used = time.Now()
	return n, nil
}

// boundLocked lets one node go if there are too many. Who still has its Caller looks it up again.
func (h *peers) boundLocked(c *Cluster) {
	if len(h.all) <= mostPeers {
		return
	}
	var oldest *peer
	for _, n := range h.all {
		if !n.used.IsZero() && (oldest == nil || n.used.Before(oldest.used)) {
			oldest = n
		}
	}
	delete(h.all, oldest.id)
	c.running.Go(func() { // ends with the calls, or with c.ctx
		ctx, cancel := context.WithTimeout(c.ctx, seeOff)
		defer cancel()
		oldest.pool.Shutdown(ctx)
	})
}

// Invoke implements asterisque.Caller. It does not wait for long until the node can be reached: the
// key may be somebody else's soon.
func (n *peer) Invoke(ctx context.Context, c *asterisque.Call) error {
	if c.Durable() { // the pool knows who has its answer
		return n.pool.Invoke(ctx, c)
	}
	choice, err := n.choose(ctx, c)
	if err != nil {
		return c.Refuse(err)
	}
	err = choice.Session.Invoke(ctx, c)
	n.pool.Chosen(choice, err)
	return err
}

// choose returns the session with the node, once there is one.
func (n *peer) choose(ctx context.Context, c *asterisque.Call) (asterisque.Choice, error) {
	late := time.NewTimer(comeBack)
	defer late.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		choice, ok := n.pool.Choose()
		if ok {
			return choice, nil
		}
		if c.FailFast() {
			return choice, n.unreachable()
		}
		select {
		case <-again.C:
		case <-late.C:
			return choice, n.unreachable()
		case <-ctx.Done():
			return choice, n.unreachable()
		}
	}
}

func (n *peer) unreachable() error {
	why := ""
	for _, s := range n.pool.Servers() {
		if s.Outage != nil {
			why = ": " + s.Outage.Error()
		}
	}
	return asterisque.ErrUnavailable.Withf("the node %s, which holds the key, cannot be reached now%s", n.id, why)
}
