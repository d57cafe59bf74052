package cluster

import (
	"context"
	"sync"
	"time"
)

// Claim is a key that this node holds, and no other one, as long as the claim is not over: see
// [Claim.Done]. All methods are safe for concurrent use.
//
// Behind it is a lease in NATS, which this node renews several times before it would run out. So a
// claim survives servers of NATS that are away for a moment, and is lost if none answers for
// longer, or if this process stands still: it knows that by its own clock, before another node can
// find the key free. Only a takeover does not wait for that: then, for the moment until this node
// is told, two nodes believe that they hold the key. Where even that does harm, make calls in the
// role of the holder by [Claim.Caller], so that peers refuse the older one, or hand [Claim.Epoch]
// to whatever stores the outcome, to do so.
type Claim struct {
	claims  *claims // these are fixed
	key     string
	epoch   uint64
	ctx     context.Context // ends with the claim; its cause is why
	end     context.CancelCauseFunc
	stopped chan struct{} // closed when nothing renews the claim any more

	mu       sync.Mutex
	revision uint64    // guarded by mu, as all below: of the entry
	renewed  time.Time // when the last renewal that succeeded began
	trouble  error     // what renewals have failed with since; nil: nothing
}

// Key returns the key.
func (c *Claim) Key() string { return c.key }

// Epoch returns a number that tells this claim from all others of the key: each is higher than
// those before, whichever node had them.
func (c *Claim) Epoch() uint64 { return c.epoch }

// Done returns a channel that is closed when the claim is over; Err tells why. A process that has
// stood still may run for a moment before it is: ask Err before a step that must not be taken
// then.
func (c *Claim) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns nil as long as the key is held; then [ErrReleased], or a [*LostError], which is an
// [ErrLost]. It looks at the clock, and asks nobody.
func (c *Claim) Err() error {
	if c.ctx.Err() == nil && c.left() <= 0 {
		c.runOut()
	}
	return c.why()
}

// why returns why the claim is over, nil as long as it is not known to be.
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
		return c.lost(claimEntry{}, cause) // the life of all claims is over
	}
}

// Release gives the key up, so that others can claim it at once: the claim is over before NATS is
// asked. The wait for NATS ends with ctx, and each request after two seconds. With an error others
// may have to wait until the lease has run out; Release may be called again then. It returns nil if
// the claim was released before, and what [Claim.Err] does if it was lost.
func (c *Claim) Release(ctx context.Context) error {
	c.Err() // a lease that ran out was lost
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

// mostConflicts bounds how often a release looks for an entry that has changed meanwhile: once for
// a renewal that was under way.
const mostConflicts = 3

// remove deletes the entry, if it is still that of the claim.
func (c *Claim) remove(ctx context.Context) error {
	revision, _, _ := c.state()
	for range mostConflicts {
		err := c.claims.store.remove(ctx, c.key, revision)
		if !isConflict(err) {
			return err
		}
		e, err := c.claims.store.read(ctx, c.key)
		if err != nil || !e.is(c.claims.self, c.epoch) {
			return err
		}
		revision = e.revision
	}
	return nil // a renewal of before cannot come in again and again: the entry is not ours
}

// state returns what renewals have come to.
func (c *Claim) state() (revision uint64, renewed time.Time, trouble error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision, c.renewed, c.trouble
}

// left returns how much is left of the lease; it may be negative.
func (c *Claim) left() time.Duration {
	_, renewed, _ := c.state()
	return c.claims.lease() - c.claims.since(renewed)
}
