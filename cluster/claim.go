package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
)

// beginClaims enables claims of keys, and lookups of the fence.
func (c *Cluster) beginClaims() (err error) {
	before := c.nc.LastError()
	c.claims, err = lease.Open(context.Background(), lease.Config{
		NATS: c.nc, Bucket: c.buckets.claims, TTL: lifeTime, Hints: "asterisque.claim." + c.cfg.Prefix,
		Name: c.cfg.Name, Node: c.cfg.ID, Instance: c.instance, Logger: c.node.Logger(),
		Held: func(h lease.Held) error { e := HeldError(h); return &e },
		Lost: func(l lease.Lost) error { e := LostError(l); return &e },
	})
	c.fence.SetClaims(c.claims) // before the node serves its first call
	return explain(c.nc, before, "claims", err)
}

// releaseClaims releases all keys. Claims that could not be released in NATS expire.
func releaseClaims(claims *lease.Claims, log *slog.Logger) {
	if claims == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := claims.Close(ctx); err != nil {
		log.Warn("cluster: claims are left to run out", "error", err)
	}
}

// claimed returns a claim for the application.
func claimed(c *lease.Claim, err error) (*Claim, error) {
	if err != nil {
		return nil, err
	}
	return &Claim{c}, nil
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
	return claimed(c.claims.Claim(ctx, key))
}

// TakeOver is like [Cluster.Claim], but also takes the key from another node that holds it, and
// notifies that node. An example is a device that has reconnected to this node. Until the other
// node is notified, both nodes consider themselves the holder. Fences protect operations that must
// not happen then: see [Claim.Caller].
func (c *Cluster) TakeOver(ctx context.Context, key string) (*Claim, error) {
	return claimed(c.claims.TakeOver(ctx, key))
}

// AwaitClaim is like [Cluster.Claim], but waits until the key is free: as a lock, or to elect one
// of several nodes. It retries during an outage of NATS, until ctx ends. A lost holder keeps the
// key for up to 15 seconds. Any one of several waiting nodes acquires the key.
func (c *Cluster) AwaitClaim(ctx context.Context, key string) (*Claim, error) {
	return claimed(c.claims.Await(ctx, key))
}

// Lookup returns the node that holds a key from NATS, which has two seconds for the answer; held is
// false if there is none.
func (c *Cluster) Lookup(ctx context.Context, key string) (h Holder, held bool, err error) {
	found, held, err := c.claims.Lookup(ctx, key)
	return Holder(found), held, err
}

// Holder returns a Caller for the present holder of a key. The holder serves a call only if it
// holds the key at that moment, with the epoch of the lookup, also by its own clock; otherwise the
// call is retried on the next holder. Calls block, within their contexts, while there is no holder
// or it cannot be reached, unless they have [asterisque.WithFailFast]. A call that may have run is
// not retried. Holder is cheap; keep its Caller for a key with frequent calls, as it caches the
// holder. Nodes are reached as by [Cluster.At], over one session for all keys of a node. The 1,024
// most recently called nodes stay connected.
func (c *Cluster) Holder(key string) asterisque.Caller {
	return c.claims.CallerOf(key, func(_ context.Context, h lease.Holder) (asterisque.Caller, error) {
		return c.peers.at(c, Holder(h))
	})
}

// Claim is a key that this node holds exclusively until the claim ends: see [Claim.Done]. All
// methods are safe for concurrent use.
//
// A claim is a lease in NATS, which this node renews several times within its duration. So a claim
// survives a brief outage of NATS. It is lost if no server answers for longer, or if this process
// is suspended: the node detects this by its own clock, before another node can acquire the key.
// Only a takeover does not wait for this: until this node is notified, two nodes consider
// themselves the holder. If even that is harmful, make the calls of the holder with [Claim.Caller],
// so that peers reject the older holder. Or pass [Claim.Epoch] to the store of the outcome, which
// can reject older epochs.
type Claim struct{ claim *lease.Claim }

// Key returns the key.
func (c *Claim) Key() string { return c.claim.Key() }

// Epoch returns the epoch of this claim. It is higher than the epochs of all earlier claims of the
// key, on any node.
func (c *Claim) Epoch() uint64 { return c.claim.Epoch() }

// Done returns a channel that is closed when the claim ends; Err returns the reason. After a
// suspension, a process may run for a moment before the channel is closed. Call Err before a step
// that requires the claim.
func (c *Claim) Done() <-chan struct{} { return c.claim.Done() }

// Err returns nil as long as the key is held; then [ErrReleased], or a [*LostError], which is an
// [ErrLost]. It uses the local clock and sends no request.
func (c *Claim) Err() error { return c.claim.Err() }

// Release releases the key, so that another node can claim it at once. The claim ends before the
// request to NATS is sent. The wait for NATS ends with ctx, and each request after two seconds.
// After an error, other nodes may have to wait until the lease expires; Release may be retried
// then. It returns nil if the claim was released before, and the error of [Claim.Err] if it was
// lost.
func (c *Claim) Release(ctx context.Context) error { return c.claim.Release(ctx) }

// Caller returns a Caller for calls on on in the role of the holder of the key. Nodes of the
// cluster reject them with ErrUnauthorized if they know of a later claim of the key. Once the claim
// has ended, such calls fail before they are sent, with ErrUnauthorized as well, and running ones
// are canceled, streams too. The cause of these errors is that of [Claim.Err]; a rejection by a
// peer has no such cause. Peers outside of the cluster ignore the role.
func (c *Claim) Caller(on asterisque.Caller) asterisque.Caller { return c.claim.Caller(on) }

// Holder is the node that holds a key.
type Holder struct {
	Name  string // empty if the node has no name and thus cannot be called
	Node  string // its id
	Epoch uint64 // of its claim: see [Claim.Epoch]
}
