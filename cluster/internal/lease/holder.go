package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
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
	claims *Claims // fixed, as key and at are
	key    string
	at     func(ctx context.Context, h Holder) (asterisque.Caller, error)

	holderSearch // has its own lock
}

// CallerOf returns a Caller for the holder of a key, with its own cache of the holder. at returns
// the Caller for a node, which is used beyond ctx, or an error. After an ErrUnavailable, calls
// retry later.
func (c *Claims) CallerOf(key string, at func(ctx context.Context, h Holder) (asterisque.Caller, error)) asterisque.Caller {
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

// holderSearch stores the present target of a holder. One call at a time searches for it in NATS,
// and concurrent calls wait for the result.
type holderSearch struct {
	mu    sync.Mutex
	known *holderTarget // nil: unknown; guarded by mu, as under
	under chan struct{} // closed when the present search ends; nil: there is none
}

// errNobody is the error of a key without a holder.
var errNobody = errors.New("no node holds it")

// forget drops the target after a call on it has failed.
func (s *holderSearch) forget(to *holderTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == to {
		s.known = nil
	}
}

// join returns the target if it is known. Otherwise the caller has to search if first is true, and
// to wait for under if not.
func (s *holderSearch) join() (to *holderTarget, under <-chan struct{}, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.known == nil && s.under == nil
	if first {
		s.under = make(chan struct{})
	}
	return s.known, s.under, first
}

// leave ends a search with its result, which may be nil.
func (s *holderSearch) leave(to *holderTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.under)
	s.known, s.under = to, nil
}

// find returns the target. It waits until there is one or ctx ends, unless failFast is set.
func (h *holderCaller) find(ctx context.Context, failFast bool) (*holderTarget, error) {
	for {
		to, under, first := h.join()
		switch {
		case to != nil:
			return to, nil
		case first:
			return h.lead(ctx, failFast)
		case failFast:
			return h.look(ctx) // the search of another call may take long
		}
		select {
		case <-under:
		case <-ctx.Done():
			return nil, fmt.Errorf("the search for it continues: %w", ctx.Err())
		}
	}
}

// lead searches for all waiting calls.
func (h *holderCaller) lead(ctx context.Context, failFast bool) (to *holderTarget, err error) {
	defer func() { h.leave(to) }()
	for times := 0; ; times++ {
		var why error
		if to, why = h.look(ctx); to != nil {
			return to, nil
		}
		if err == nil || ctx.Err() == nil { // otherwise ctx has cut the attempt short
			err = why
		}
		if failFast || isSearchOver(err) || !wait.HoldOff(ctx, kv.Backoff(times)) {
			return nil, err
		}
	}
}

// isSearchOver reports whether a search that failed with err would fail again. An error that is no
// Abort is an error of NATS, or errNobody.
func isSearchOver(err error) bool {
	var a *asterisque.Abort
	return errors.As(err, &a) && (a == errClaimsOver || a.Code != asterisque.ErrUnavailable.Code)
}

// look makes one lookup.
func (h *holderCaller) look(ctx context.Context) (*holderTarget, error) {
	if h.claims.ctx.Err() != nil {
		return nil, errClaimsOver
	}
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	who, held, err := h.claims.Lookup(ctx, h.key)
	if err == nil && !held {
		err = errNobody
	}
	if err != nil {
		return nil, err
	}
	on, err := h.at(ctx, who)
	if err != nil {
		return nil, codec.AbortOf(err)
	}
	return &holderTarget{who, on, asterisque.Metadata{toHolder: claimMark(h.key, who.Epoch)}}, nil
}
