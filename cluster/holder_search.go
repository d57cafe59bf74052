package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// holderSearch is what a holder knows of the node that it calls: of those that look for that, one
// asks NATS, and the others wait.
type holderSearch struct {
	mu    sync.Mutex
	known *holderTarget // guarded by mu, as under; nil: not known
	under chan struct{} // closed when the search that is under way ends; nil: there is none
}

// errNobody is why there is no holder.
var errNobody = errors.New("nobody holds it")

// forget is called when a call has failed at to.
func (s *holderSearch) forget(to *holderTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == to {
		s.known = nil
	}
}

// join returns the holder if it is known. Otherwise the caller is to search if first is true, and
// else to wait until the search of another one ends.
func (s *holderSearch) join() (to *holderTarget, under <-chan struct{}, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.known == nil && s.under == nil
	if first {
		s.under = make(chan struct{})
	}
	return s.known, s.under, first
}

// leave ends a search, which has found to, or nothing.
func (s *holderSearch) leave(to *holderTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.under)
	s.known, s.under = to, nil
}

// find returns the holder. Unless it must not, it waits until there is one, or ctx ends.
func (h *holder) find(ctx context.Context, failFast bool) (*holderTarget, error) {
	for {
		to, under, first := h.join()
		switch {
		case to != nil:
			return to, nil
		case first:
			return h.lead(ctx, failFast)
		case failFast:
			return h.look(ctx) // the search of the others may take long
		}
		select {
		case <-under:
		case <-ctx.Done():
			return nil, fmt.Errorf("the search for it goes on: %w", ctx.Err())
		}
	}
}

// lead searches for all.
func (h *holder) lead(ctx context.Context, failFast bool) (to *holderTarget, err error) {
	defer func() { h.leave(to) }()
	for times := 0; ; times++ {
		var why error
		if to, why = h.look(ctx); to != nil {
			return to, nil
		}
		if err == nil || ctx.Err() == nil { // else it was cut short, and the one before tells more
			err = why
		}
		if failFast || isSearchOver(err) || !wait.HoldOff(ctx, holdOffTime(times)) {
			return nil, err
		}
	}
}

// isSearchOver reports whether a search that has failed with err will fail again. What is no Abort
// is an error of NATS, or errNobody.
func isSearchOver(err error) bool {
	var a *asterisque.Abort
	return errors.As(err, &a) && (a == errClaimsOver || a.Code != asterisque.ErrUnavailable.Code)
}

// look looks the holder up, once.
func (h *holder) look(ctx context.Context) (*holderTarget, error) {
	if h.claims.ctx.Err() != nil {
		return nil, errClaimsOver
	}
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
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
