package lease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// callables maps nodes to Callers.
type callables struct {
	mu   sync.Mutex
	byID map[string]asterisque.Caller // guarded by mu, as err
	err  error                        // for all other nodes
}

func (p *callables) at(_ context.Context, h Holder) (asterisque.Caller, error) {
	id := h.Node
	p.mu.Lock()
	defer p.mu.Unlock()
	if on := p.byID[id]; on != nil {
		return on, nil
	}
	return nil, p.err
}

func (p *callables) put(id string, on asterisque.Caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byID[id] = on
}

// holders returns two nodes, and a Caller for the holder of "k".
func holders(t *testing.T) (s *claimSite, a, b *claimant, on *holderCaller, at *callables) {
	s = newClaimSite(t, longTTL)
	a, b = s.join("a"), s.join("b")
	at = &callables{err: asterisque.ErrUnavailable.Withf("no such node")}
	at.byID = map[string]asterisque.Caller{"a": a.callable(t), "b": b.callable(t)}
	return s, a, b, s.join("caller").CallerOf("k", at.at).(*holderCaller), at
}

func requireServedBy(t *testing.T, ownID string, on asterisque.Caller, opts ...asterisque.CallOption) {
	t.Helper()
	got, err := whoami.Call(t.Context(), on, "", opts...)
	require.NoError(t, err)
	require.Equal(t, ownID, got)
}

func TestHolder_Call(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, a, b, on, _ := holders(t)
		first := a.has(t, "k")
		reads := countReads(t, s)
		for range 10 {
			requireServedBy(t, "a", on)
		}
		requireReads(t, reads, 1, "the holder is remembered")
		second := b.takes(t, "k")
		requireLost(t, first)
		requireServedBy(t, "b", on)
		requireServedBy(t, "b", on, asterisque.WithFailFast())
		p, err := ticks.Open(t.Context(), on, "")
		require.NoError(t, err)
		require.NoError(t, p.CloseSend())
		a.takes(t, "k")
		requireLost(t, second)
		requireServedBy(t, "a", on, asterisque.WithFailFast())
	})
}

func TestHolder_WaitsForClaim(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, a, _, on, _ := holders(t)
		reads := countReads(t, s)
		answers := make(chan error, 100)
		for range cap(answers) {
			go func() { // ends with its call
				_, err := whoami.Call(context.Background(), on, "")
				answers <- err
			}()
		}
		require.Eventually(t, func() bool { return reads.Load() > 2 }, claimTestTime, claimTick)
		require.Less(t, reads.Load(), int64(20), "one of them asks for all")
		require.Empty(t, answers)
		a.has(t, "k")
		for range cap(answers) {
			require.NoError(t, <-answers)
		}
	})
}

func TestHolder_ContextEnds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, a, _, on, _ := holders(t)
		for name, test := range map[string]struct {
			call func(ctx context.Context) error
			want error
		}{
			"fail fast": {func(ctx context.Context) error {
				_, err := whoami.Call(ctx, on, "", asterisque.WithFailFast())
				return err
			}, asterisque.ErrUnavailable},
			"its time to live": {func(ctx context.Context) error {
				_, err := ticks.Open(ctx, on, "", asterisque.WithTTL(500*time.Millisecond))
				return err
			}, asterisque.ErrExpired},
			"its context": {func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(500*time.Millisecond, cancel)
				_, err := whoami.Call(ctx, on, "")
				return err
			}, asterisque.ErrCanceled},
		} {
			err := test.call(t.Context())
			requireNotRun(t, a, 0, err, test.want)
			require.ErrorIs(t, err, errNobody, name)
			require.ErrorContains(t, err, `a call for the holder of "k": no node holds it`, name)
		}
	})
}

func TestHolder_FailFast(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, a, _, on, _ := holders(t)
		_, under, first := on.join()
		require.True(t, first, "a search that takes long")
		_, err := whoami.Call(t.Context(), on, "", asterisque.WithFailFast())
		requireNotRun(t, a, 0, err, asterisque.ErrUnavailable)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = whoami.Call(ctx, on, "")
		requireNotRun(t, a, 0, err, asterisque.ErrExpired)
		on.leave(nil)
		<-under
		a.has(t, "k")
		requireServedBy(t, "a", on)
	})
}

func TestHolder_Replaced(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, a, b, on, at := holders(t)
		c := a.has(t, "k")
		requireServedBy(t, "a", on)
		closed := fenceSessionTo(t)
		closed.Close()
		at.put("a", closed)
		require.NoError(t, c.Release(t.Context()))
		answer := make(chan error, 1)
		go func() { // ends with its call
			_, err := whoami.Call(context.Background(), on, "")
			answer <- err
		}()
		require.Eventually(t, func() bool { return on.searching() }, claimTestTime, claimTick)
		b.has(t, "k")
		require.NoError(t, <-answer)
		require.EqualValues(t, 1, b.ran.Load())
	})
}

func (s *holderSearch) searching() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.under != nil
}

// The entry of the holder stays until it expires.
func TestHolder_Unreachable(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, a, _, on, at := holders(t)
		a.has(t, "k")
		session, closed := at.byID["a"], fenceSessionTo(t)
		closed.Close()
		at.put("a", closed)
		_, err := whoami.Call(t.Context(), on, "", asterisque.WithFailFast())
		require.Error(t, err)
		require.True(t, asterisque.Repeatable(err))
		answer := make(chan error, 1)
		go func() { // ends with its call
			_, err := whoami.Call(context.Background(), on, "")
			answer <- err
		}()
		require.Never(t, func() bool { return len(answer) > 0 }, 100*time.Millisecond, claimTick)
		at.put("a", session)
		require.NoError(t, <-answer)

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		at.put("a", nil)
		on.known = nil
		_, err = whoami.Call(ctx, on, "")
		requireNotRun(t, a, 1, err, asterisque.ErrExpired)
		require.ErrorContains(t, err, "no such node")
	})
}

// The node reports that it no longer holds the key, while NATS still has its entry.
func TestHolder_StaleEntry(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, a, b, on, _ := holders(t)
		c := a.has(t, "k")
		c.end(ErrReleased) // without removing the entry
		_, err := whoami.Call(t.Context(), on, "", asterisque.WithFailFast())
		requireNotRun(t, a, 0, err, asterisque.ErrUnavailable)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err = whoami.Call(ctx, on, "")
		requireNotRun(t, a, 0, err, asterisque.ErrExpired)
		b.takes(t, "k")
		requireServedBy(t, "b", on)
	})
}

func TestHolder_MayHaveRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, a, b, on, at := holders(t)
		a.has(t, "k")
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { // ends with ctx, or the session
			_, err := whoami.Call(ctx, on, "wait")
			answer <- err
		}()
		require.Eventually(t, func() bool { return a.ran.Load() == 1 }, claimTestTime, claimTick)
		b.takes(t, "k")
		at.byID["a"].(*asterisque.Session).Close()
		err := <-answer
		cancel()
		require.Error(t, err)
		require.False(t, asterisque.Repeatable(err))
		require.Zero(t, b.ran.Load())
	})
}

func TestHolder_FinalErrors(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, a, _, on, at := holders(t)
		a.has(t, "k")
		refused := errors.New("not to be called")
		at.byID, at.err = map[string]asterisque.Caller{}, refused
		_, err := whoami.Call(t.Context(), on, "")
		requireNotRun(t, a, 0, err, refused)
		_, err = whoami.Call(t.Context(), on.claims.CallerOf("k.", at.at), "")
		requireNotRun(t, a, 0, err, asterisque.ErrBadParams)
		require.NoError(t, on.claims.Close(t.Context()))
		_, err = whoami.Call(t.Context(), on, "")
		requireNotRun(t, a, 0, err, asterisque.ErrUnavailable)
	})
}

func TestHolder_Nested(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, a, b, on, _ := holders(t)
		a.has(t, "k")
		own := b.has(t, "own")
		requireServedBy(t, "a", own.Caller(on))
		a.takes(t, "own")
		requireLost(t, own)
		_, err := whoami.Call(t.Context(), own.Caller(on), "")
		requireNotRun(t, a, 1, err, asterisque.ErrUnauthorized)
	})
}
