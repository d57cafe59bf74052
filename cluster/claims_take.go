package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// claim claims a key for this node. It fails with a *HeldError if a node, this one or another,
// holds it; with ErrBadParams if the key is invalid; with ErrOverloaded if this node holds 65,536
// keys; with ErrUnavailable if it has left; and otherwise if NATS does not answer within ctx, or
// within two seconds. A claim that loses its answer leaves an entry behind for ttl. For this node,
// the key is free nevertheless.
func (c *claims) claim(ctx context.Context, key string) (*Claim, error) {
	return c.take(ctx, key, false)
}

// takeOver is like claim, but also takes the key from another node that holds it, and notifies that
// node.
func (c *claims) takeOver(ctx context.Context, key string) (*Claim, error) {
	return c.take(ctx, key, true)
}

func (c *claims) take(ctx context.Context, key string, force bool) (*Claim, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.lease())
	defer cancel()
	done, err := c.reserve(ctx, key)
	if err != nil {
		return nil, err
	}
	defer done()
	before := c.nc.LastError()
	for {
		claim, err := c.attempt(ctx, key, force)
		if claim != nil || err != nil {
			return claim, c.forbidden(before, key, err)
		}
		if !wait.HoldOff(ctx, rand.N(20*time.Millisecond)) {
			return nil, unanswered("claim", key, context.Cause(ctx))
		}
	}
}

// attempt makes one attempt to claim a key. It returns nil, nil if another node has changed the
// entry meanwhile, or if it took too long.
func (c *claims) attempt(ctx context.Context, key string, force bool) (*Claim, error) {
	begin := c.now()
	e, err := c.store.read(ctx, key)
	if err != nil {
		return nil, unanswered("claim", key, err)
	}
	// an entry of this instance without a claim remains of a claim that lost its answer
	if e.held && e.by != c.self && !force {
		return nil, &HeldError{key, e.by.node, e.epoch}
	}
	at, err := c.store.position(ctx, c.ttl)
	if err != nil {
		return nil, unanswered("claim", key, err)
	}
	if at.last < e.revision || at.epoch() <= e.epoch {
		return nil, nil // from a deposed leader, or from before the bucket was created again
	}
	revision, err := c.store.write(ctx, key, c.self, at.epoch(), e.revision)
	switch {
	case kv.IsConflict(err):
		return nil, nil
	case err != nil:
		return nil, unanswered("claim", key, err)
	case revision <= at.last || c.since(begin) >= c.lease():
		return nil, nil // written to another bucket, or too late: see claimPosition.epoch
	}
	claim, ok := c.hold(key, at.epoch(), revision, begin)
	if !ok {
		c.store.remove(ctx, key, revision) // otherwise it expires
		return nil, errClaimsOver
	}
	c.tell(key, e)
	return claim, nil
}

// forbidden returns err, or the permission error of the NATS server since before, if the server has
// not answered.
func (c *claims) forbidden(before error, key string, err error) error {
	why := kv.Permission(c.nc, before, c.store.bucket.Bucket().Bucket(), err)
	if why == err || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("cluster: claim %q: %w", key, why)
}

// tell sends a hint to the node of an entry that its key was taken over. If the message is lost,
// the node finds out when it renews its claim.
func (c *claims) tell(key string, had claimEntry) {
	if !had.held || had.by == c.self || !token.MatchString(had.by.node) {
		return
	}
	if err := c.nc.Publish(c.hints+"."+had.by.node, []byte(key)); err != nil {
		c.log.Debug("cluster: a node could not be notified of the takeover of its claim", "node", had.by.node, "key", key, "error", err)
	}
}
