package cluster

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
	who, held, err := h.claims.lookup(ctx, h.key)
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
