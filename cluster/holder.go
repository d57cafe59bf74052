package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// holderCaller is a Caller for the present holder of a key. A call is sent to the node that NATS
// names, which serves it only if it holds the key at that moment, also by its own clock. If it does
// not, or cannot be reached, the call is retried on the next holder, as long as it certainly did
// not run ([asterisque.Repeatable]). Calls block, within their context and their time to live,
// while there is no holder or it cannot be reached. Calls with [asterisque.WithFailFast] fail with
// ErrUnavailable instead. A durable call that a node rejects is not retried, as the rejection is
// its answer.
type holderCaller struct {
	claims *claims // fixed, as key and at are
	key    string
	at     func(ctx context.Context, h Holder) (asterisque.Caller, error)

	holderSearch // has its own lock
}

// newHolder returns a Caller for the holder of a key. at returns the Caller for a node, which is
// used beyond ctx, or an error. After an ErrUnavailable, calls retry later.
func newHolder(c *claims, key string, at func(ctx context.Context, h Holder) (asterisque.Caller, error)) *holderCaller {
	return &holderCaller{claims: c, key: key, at: at}
}

// holderTarget is a holder, and the Caller for it.
type holderTarget struct { // fixed
	Holder
	on   asterisque.Caller
	says asterisque.Metadata
}

// Invoke implements [asterisque.Caller].
func (h *holderCaller) Invoke(ctx context.Context, c *asterisque.Call) error {
	patient, cancel := ctx, context.CancelFunc(func() {})
	if at, ok := c.Deadline(ctx); ok {
		patient, cancel = context.WithDeadline(ctx, at)
	}
	defer cancel()
	var last error
	for failed, again := (*holderTarget)(nil), 0; ; {
		to, err := h.find(patient, c.FailFast())
		switch {
		case err != nil:
			return c.Refuse(h.unfound(patient, err, last))
		case failed != nil && to.Holder != failed.Holder:
			again = 0
		case failed != nil && c.FailFast():
			return last
		}
		last = to.on.Invoke(asterisque.ContextWithMetadata(ctx, to.says), c)
		if last == nil || !isElsewhere(last, c.FailFast()) || ctx.Err() != nil {
			return last
		}
		h.forget(to)
		if failed != nil && !wait.HoldOff(patient, kv.Backoff(again)) {
			return c.Refuse(h.unfound(patient, last, last))
		}
		failed, again = to, again+1
	}
}

// isElsewhere reports whether a call that failed with err is to be retried on another holder, or
// later on the same one. A fail-fast call is retried only if its node is not the holder.
func isElsewhere(err error, failFast bool) bool {
	var a *asterisque.Abort
	switch {
	case !asterisque.Repeatable(err):
		return false
	case errors.As(err, &a) && string(a.Detail) == notHolder:
		return true
	}
	return !failFast && (errors.Is(err, asterisque.ErrUnavailable) || errors.Is(err, asterisque.ErrSessionClosed))
}

// unfound returns the error of a call for which no holder was found. last is the error of its last
// attempt, or nil.
func (h *holderCaller) unfound(patient context.Context, err, last error) error {
	if last == nil {
		last = err
	}
	text := fmt.Sprintf("a call for the holder of %q: %v", h.key, last)
	var a *asterisque.Abort
	switch {
	case errors.Is(patient.Err(), context.Canceled):
		a = asterisque.ErrCanceled.Withf("%s", text)
	case patient.Err() != nil:
		a = asterisque.ErrExpired.Withf("%s", text)
	case errors.As(err, &a):
		a = a.Withf("%s", text)
	default:
		a = asterisque.ErrUnavailable.Withf("%s", text)
	}
	a.Cause = last
	return a
}
