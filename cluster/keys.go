package cluster

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque"
)

// beginClaims enables claims of keys, and lookups of the fence.
func (c *Cluster) beginClaims() (err error) {
	before := c.nc.LastError()
	self := claimOwner{c.cfg.Name, c.cfg.ID, c.instance}
	c.claims, err = newClaims(context.Background(), c.nc, c.buckets.claims, self, "asterisque.claim."+c.cfg.Prefix, c.cfg.times.life, c.node.Logger())
	c.fence.claims = c.claims // before the node serves its first call
	return explain(c.nc, before, "claims", err)
}

// releaseClaims releases all keys. Claims that could not be released in NATS expire.
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

// Claim makes this node the holder of a key, such as "device/4711", until it releases the claim or
// loses it: see [Claim]. A key has 1 to 200 of A-Z, a-z, 0-9 and "-_=./"; it neither begins nor
// ends with '.' or '/', and has no two dots in a row.
//
// It fails with a [*HeldError] if a node, this one or another, holds the key already; see
// [Cluster.AwaitClaim] and [Cluster.TakeOver]. Other errors are ErrBadParams for an invalid key,
// ErrOverloaded if this node holds 65,536 keys, and those of NATS, which has two seconds for each
// answer. ctx bounds the wait, and has no effect on the claim.
func (c *Cluster) Claim(ctx context.Context, key string) (*Claim, error) {
	return c.claims.claim(ctx, key)
}

// TakeOver is like [Cluster.Claim], but also takes the key from another node that holds it, and
// notifies that node. An example is a device that has reconnected to this node. Until the other
// node is notified, both nodes consider themselves the holder. Fences protect operations that must
// not happen then: see [Claim.Caller].
func (c *Cluster) TakeOver(ctx context.Context, key string) (*Claim, error) {
	return c.claims.takeOver(ctx, key)
}

// AwaitClaim is like [Cluster.Claim], but waits until the key is free: as a lock, or to elect one
// of several nodes. It retries during an outage of NATS, until ctx ends. A lost holder keeps the
// key for up to 15 seconds. Any one of several waiting nodes acquires the key.
func (c *Cluster) AwaitClaim(ctx context.Context, key string) (*Claim, error) {
	return c.claims.await(ctx, key)
}

// Lookup returns the node that holds a key from NATS, which has two seconds for the answer; held is
// false if there is none.
func (c *Cluster) Lookup(ctx context.Context, key string) (h Holder, held bool, err error) {
	if err := checkKey(key); err != nil {
		return h, false, err
	}
	return c.claims.lookup(ctx, key)
}

// Holder returns a Caller for the present holder of a key. The holder serves a call only if it
// holds the key at that moment, with the epoch of the lookup, also by its own clock; otherwise the
// call is retried on the next holder. Calls block, within their contexts, while there is no holder
// or it cannot be reached, unless they have [asterisque.WithFailFast]. A call that may have run is
// not retried. Holder is cheap; keep its Caller for a key with frequent calls, as it caches the
// holder. Nodes are reached as by [Cluster.At], over one session for all keys of a node. The 1,024
// most recently called nodes stay connected.
func (c *Cluster) Holder(key string) asterisque.Caller {
	return newHolder(c.claims, key, func(_ context.Context, h Holder) (asterisque.Caller, error) {
		return c.peers.at(c, h)
	})
}
