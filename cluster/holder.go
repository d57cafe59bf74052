package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// holder is a Caller for whoever holds a key. A call goes to the node that NATS names, which serves
// it only if it holds the key at that moment, by its own clock as well. If it does not, or is not
// there, the call goes to the next holder, as long as it certainly did not run
// ([asterisque.Repeatable]): one that may have run is not repeated. Calls wait, within their
// context and their time to live, as long as nobody holds the key, or its holder cannot be reached.
// Those with [asterisque.WithFailFast] fail with ErrUnavailable instead. A durable call that a node
// refuses stays refused, as that is its answer.
type holder struct {
	claims *claims // these are fixed
	key    string
	at     func(ctx context.Context, h Holder) (asterisque.Caller, error)

	holderSearch // locks itself
}

// newHolder returns a Caller for the holder of a key. at returns the Caller for the node with an
// id, which is used beyond ctx, or an error: if that is an ErrUnavailable, calls try again later.
func newHolder(c *claims, key string, at func(ctx context.Context, h Holder) (asterisque.Caller, error)) *holder {
	return &holder{claims: c, key: key, at: at}
}

// holderTarget is a holder, and how to call it.
type holderTarget struct { // fixed
	Holder
	on   asterisque.Caller
	says asterisque.Metadata
}

// Invoke implements [asterisque.Caller].
func (h *holder) Invoke(ctx context.Context, c *asterisque.Call) error {
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
		if failed != nil && !wait.HoldOff(patient, holdOffTime(again)) {
			return c.Refuse(h.unfound(patient, last, last))
		}
		failed, again = to, again+1
	}
}

// isElsewhere reports whether a call that has failed with err is for another holder, or for the
// same one later. One that must not wait is so only if its node says that it is not the holder.
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

// unfound returns the error of a call for which no holder was found: last is how it has failed at
// the one before, if there was one.
func (h *holder) unfound(patient context.Context, err, last error) error {
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
