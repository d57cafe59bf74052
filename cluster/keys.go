package cluster

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque"
)

// beginClaims lets keys be claimed from now on, and the fence ask who holds them.
func (c *Cluster) beginClaims() (err error) {
	before := c.nc.LastError()
	self := owner{c.cfg.Name, c.cfg.ID, c.instance}
	c.claims, err = newClaims(context.Background(), c.nc, c.buckets.claims, self, "asterisque.claim."+c.cfg.Prefix, c.cfg.times.life, c.node.Logger())
	c.fence.claims = c.claims // before the node serves anybody
	return explain(c.nc, before, "claims", err)
}

// releaseClaims gives up all keys. Those that NATS is not told of run out.
func (c *Cluster) releaseClaims() {
	if c.claims == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := c.claims.close(ctx); err != nil {
		c.node.Logger().Warn("cluster: claims are left to run out", "error", err)
	}
}

// Claim lets this node be the holder of a key, such as "device/4711", until it releases the claim
// or loses it: see [Claim]. A key has 1 to 200 of A-Z, a-z, 0-9 and "-_=./"; it neither begins nor
// ends with '.' or '/', and has no two dots in a row.
//
// It fails with a [*HeldError] if a node holds the key already, this one or another; see
// [Cluster.AwaitClaim] and [Cluster.TakeOver]. Other errors are ErrBadParams for a key that cannot
// be, ErrOverloaded when this node holds 65,536 keys, and those of NATS, which has two seconds for
// each answer. ctx ends the wait, and has no effect on the claim.
func (c *Cluster) Claim(ctx context.Context, key string) (*Claim, error) {
	return c.claims.claim(ctx, key)
}

// TakeOver is [Cluster.Claim], but takes the key from the node that holds it, which is told: for a
// device, for example, that has come to this node, and not through the other one any more. Until
// the other node has heard of it both believe that they hold the key; what must not happen then,
// fences keep from happening: see [Claim.Caller].
func (c *Cluster) TakeOver(ctx context.Context, key string) (*Claim, error) {
	return c.claims.takeOver(ctx, key)
}

// AwaitClaim is [Cluster.Claim], but waits until nobody holds the key: as a lock, or to elect one
// node of several. It goes on while NATS is away, until ctx ends. A holder that was lost keeps the
// key for up to 15 seconds. Of several nodes that wait, one gets the key, whichever.
func (c *Cluster) AwaitClaim(ctx context.Context, key string) (*Claim, error) {
	return c.claims.await(ctx, key)
}

// Lookup returns the node that holds a key, as NATS says it, which has two seconds for the answer;
// held is false if there is none.
func (c *Cluster) Lookup(ctx context.Context, key string) (h Holder, held bool, err error) {
	if err := checkKey(key); err != nil {
		return h, false, err
	}
	return c.claims.lookup(ctx, key)
}

// Holder returns a Caller for whoever holds a key at the time of a call. That node serves the call
// only if it holds the key at that moment, with the epoch that was looked up, by its own clock as
// well; otherwise the call goes to the next holder. Calls wait, within their contexts, while nobody
// holds the key or the holder cannot be reached, unless [asterisque.WithFailFast] says otherwise;
// one that may have run is not made again. Holder costs little; keep it for a key that is called
// often, as it remembers the holder. Nodes are reached as by [Cluster.At], over one session for all
// keys of a node; the last 1,024 that were called stay connected.
func (c *Cluster) Holder(key string) asterisque.Caller {
	return newHolder(c.claims, key, func(_ context.Context, h Holder) (asterisque.Caller, error) {
		return c.peers.at(c, h)
	})
}
