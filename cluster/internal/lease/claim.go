package lease

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// Claim is a key that this node holds exclusively until the claim ends. Without a takeover, at
// most one node considers itself the holder at any time. All methods are safe for concurrent use.
type Claim struct {
	claims  *Claims // fixed, as all up to stopped
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

// Err returns nil as long as the key is held; then [ErrReleased], or the error of [Config].Lost,
// which is an [ErrLost]. It uses the local clock and sends no request.
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
		if errors.Is(cause, ErrLost) {
			return cause
		}
		return c.lost(entry{}, cause) // the lifetime of all claims has ended
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

// Metadata keys of calls. A value is an epoch in decimal, a space, and a key.
const (
	asHolder = "asterisque.as" // the caller is the holder of the key
	toHolder = "asterisque.to" // the call is for the holder of the key
)

// claimMark returns the metadata value for a key that is held with epoch.
func claimMark(key string, epoch uint64) string { return strconv.FormatUint(epoch, 10) + " " + key }

// parseClaimMark is the inverse of claimMark. The error contains the metadata key, name.
func parseClaimMark(name, value string) (key string, epoch uint64, err error) {
	number, key, _ := strings.Cut(value, " ")
	epoch, err = strconv.ParseUint(number, 10, 64)
	if err != nil || epoch == 0 || checkKey(key) != nil {
		return "", 0, asterisque.ErrBadParams.Withf("the metadata %q of the call is %q, not an epoch, a space and a key that can be claimed", name, value)
	}
	return key, epoch, nil
}

// Caller returns a Caller for calls on on in the role of the holder of the key. Nodes of the
// cluster reject them with ErrUnauthorized if they know of a later claim of the key. Once the claim
// has ended, such calls fail before they are sent, with ErrUnauthorized as well, and running ones
// are canceled, streams too. The cause of these errors is that of [Claim.Err]; a rejection by a
// peer has no such cause. Peers outside of the cluster ignore the role.
func (c *Claim) Caller(on asterisque.Caller) asterisque.Caller {
	says := asterisque.Metadata{asHolder: claimMark(c.key, c.epoch)}
	return asterisque.Intercept(on, func(ctx context.Context, call *asterisque.Call, next asterisque.Next) error {
		return c.around(ctx, call, next, says)
	})
}

func (c *Claim) around(ctx context.Context, call *asterisque.Call, next asterisque.Next, says asterisque.Metadata) error {
	if err := c.Err(); err != nil {
		return call.Refuse(overAs(asterisque.ErrUnauthorized, err))
	}
	bound, unbind := c.bind(asterisque.ContextWithMetadata(ctx, says))
	if call.Blocks() {
		call.WrapBlocks(asterisque.Blocks{End: func(result []byte, err error) ([]byte, error) {
			unbind()
			return result, c.outcome(ctx, err)
		}})
	}
	err := next(bound, call)
	if err != nil || !call.Blocks() {
		unbind() // otherwise the end of the pipe does
	}
	return c.outcome(ctx, err)
}

// bind returns a context that ends with the claim, or when unbind is called.
func (c *Claim) bind(ctx context.Context) (bound context.Context, unbind func()) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(c.why()) })
	return bound, func() {
		stop()
		cancel(nil)
	}
}

// outcome returns err, the outcome of a call with the context ctx. If the end of the claim has
// canceled the call, it is the cause.
func (c *Claim) outcome(ctx context.Context, err error) error {
	var a *asterisque.Abort
	why := c.why()
	if why == nil || ctx.Err() != nil || !errors.As(err, &a) || a.Code != asterisque.ErrCanceled.Code || a.Remote {
		return err
	}
	return overAs(a, why)
}

// overAs returns a with the end of a claim as its cause.
func overAs(a *asterisque.Abort, why error) error {
	b := *a
	b.Message, b.Cause = why.Error(), why
	return &b
}
