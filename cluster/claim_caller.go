package cluster

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/asterisque-go/asterisque"
)

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
