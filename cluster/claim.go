package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

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
type Claim struct {
	claims  *claims // fixed, as all up to stopped
	key     string
	epoch   uint64
	ctx     context.Context // ends with the claim; its cause is the reason
	end     context.CancelCauseFunc
	stopped chan struct{} // closed when the renewals have ended

	mu       sync.Mutex
	revision uint64    // of the entry; guarded by mu, as all below
	renewed  time.Time // start of the last successful renewal
	trouble  error     // error of the renewals since; nil: none
}

// Key returns the key.
func (c *Claim) Key() string { return c.key }

// Epoch returns the epoch of this claim. It is higher than the epochs of all earlier claims of the
// key, on any node.
func (c *Claim) Epoch() uint64 { return c.epoch }

// Done returns a channel that is closed when the claim ends; Err returns the reason. After a
// suspension, a process may run for a moment before the channel is closed. Call Err before a step
// that requires the claim.
func (c *Claim) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns nil as long as the key is held; then [ErrReleased], or a [*LostError], which is an
// [ErrLost]. It uses the local clock and sends no request.
func (c *Claim) Err() error {
	if c.ctx.Err() == nil && c.left() <= 0 {
		c.runOut()
	}
	return c.why()
}

// why returns the reason why the claim has ended, or nil while it is not known to have ended.
func (c *Claim) why() error {
	switch cause := context.Cause(c.ctx); {
	case cause == nil || c.ctx.Err() == nil:
		return nil
	case cause == ErrReleased:
		return cause
	default:
		if lost, ok := cause.(*LostError); ok {
			return lost
		}
		return c.lost(claimEntry{}, cause) // the lifetime of all claims has ended
	}
}

// Release releases the key, so that another node can claim it at once. The claim ends before the
// request to NATS is sent. The wait for NATS ends with ctx, and each request after two seconds.
// After an error, other nodes may have to wait until the lease expires; Release may be retried
// then. It returns nil if the claim was released before, and the error of [Claim.Err] if it was
// lost.
func (c *Claim) Release(ctx context.Context) error {
	c.Err() // ends a claim whose lease has expired
	c.end(ErrReleased)
	if err := c.why(); err != ErrReleased {
		return err
	}
	<-c.stopped
	if err := c.remove(ctx); err != nil {
		return unanswered("release", c.key, err)
	}
	return nil
}

// mostConflicts bounds the attempts of a release after the entry has changed: once for a renewal in
// flight.
const mostConflicts = 3

// remove deletes the entry, if it still belongs to the claim.
func (c *Claim) remove(ctx context.Context) error {
	revision, _, _ := c.state()
	for range mostConflicts {
		err := c.claims.store.remove(ctx, c.key, revision)
		if !kv.IsConflict(err) {
			return err
		}
		e, err := c.claims.store.read(ctx, c.key)
		if err != nil || !e.is(c.claims.self, c.epoch) {
			return err
		}
		revision = e.revision
	}
	return nil // a late renewal cannot conflict each time: the entry belongs to another claim
}

// state returns the result of the renewals.
func (c *Claim) state() (revision uint64, renewed time.Time, trouble error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision, c.renewed, c.trouble
}

// left returns the remaining time of the lease; it may be negative.
func (c *Claim) left() time.Duration {
	_, renewed, _ := c.state()
	return c.claims.lease() - c.claims.since(renewed)
}
