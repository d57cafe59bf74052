package cluster

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/asterisque-go/asterisque"
)

// These are keys of the metadata of calls. A value is an epoch in decimal, a space, and a key.
const (
	asHolder = "asterisque.as" // the call is one of the holder of the key
	toHolder = "asterisque.to" // the call is for the holder of the key
)

// claimMark returns the value of metadata for a key that is held with epoch.
func claimMark(key string, epoch uint64) string { return strconv.FormatUint(epoch, 10) + " " + key }

// parseClaimMark returns what claimMark was given. The error names the key of the metadata.
func parseClaimMark(name, value string) (key string, epoch uint64, err error) {
	number, key, _ := strings.Cut(value, " ")
	epoch, err = strconv.ParseUint(number, 10, 64)
	if err != nil || epoch == 0 || checkKey(key) != nil {
		return "", 0, asterisque.ErrBadParams.Withf("the metadata %q of the call is %q, not an epoch, a space and a key that can be claimed", name, value)
	}
	return key, epoch, nil
}

// Caller returns a Caller for calls on on in the role of the holder of the key: nodes of the
// cluster refuse them, with ErrUnauthorized, when they know that somebody has held the key since.
// Once the claim is over they fail before they are sent, with ErrUnauthorized as well, and those
// that are under way are canceled, streams too. Such an error is caused by that of [Claim.Err]; one
// of a peer that refuses is not. Peers outside of the cluster take them as any other call.
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
		unbind() // otherwise its end does
	}
	return c.outcome(ctx, err)
}

// bind returns a context that ends with the claim, or by unbind.
func (c *Claim) bind(ctx context.Context) (bound context.Context, unbind func()) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(c.why()) })
	return bound, func() {
		stop()
		cancel(nil)
	}
}

// outcome returns err, the outcome of a call with the context ctx, with the end of the claim as its
// cause if that has canceled the call.
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
