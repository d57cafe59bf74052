package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// callables maps nodes to Callers.
type callables struct {
	mu   sync.Mutex
	byID map[string]asterisque.Caller // guarded by mu, as err
	err  error                        // for all other nodes
}

func (p *callables) at(_ context.Context, h lease.Holder) (asterisque.Caller, error) {
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

// holders returns two nodes, and a Caller for the holder of "k" that belongs to a third one.
func holders(t *testing.T) (s *claimSite, a, b *claimant, on asterisque.Caller, at *callables) {
	s = newClaimSite(t, longTTL)
	a, b = s.join("a"), s.join("b")
	at = &callables{err: asterisque.ErrUnavailable.Withf("no such node")}
	at.byID = map[string]asterisque.Caller{"a": a.callable(t), "b": b.callable(t)}
	return s, a, b, s.join("caller").CallerOf("k", at.at), at
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
			var abort *asterisque.Abort
			require.ErrorAs(t, err, &abort, name)
			require.EqualError(t, abort.Cause, "no node holds it", name)
			require.ErrorContains(t, err, `a call for the holder of "k": no node holds it`, name)
		}
	})
}

func TestHolder_FailFast(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, a, _, on, _ := holders(t)
		withheld, restore := s.withholdReads()
		searching, stop := context.WithCancel(t.Context())
		searched := make(chan error, 1)
		go func() { // ends with its context
			_, err := whoami.Call(searching, on, "")
			searched <- err
		}()
		synctest.Wait()
		require.EqualValues(t, 1, withheld.Load(), "a search that takes long")
		restore()
		begin := time.Now()
		_, err := whoami.Call(t.Context(), on, "", asterisque.WithFailFast())
		requireNotRun(t, a, 0, err, asterisque.ErrUnavailable)
		require.Equal(t, begin, time.Now(), "it does not wait for that search")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = whoami.Call(ctx, on, "")
		requireNotRun(t, a, 0, err, asterisque.ErrExpired)
		require.ErrorContains(t, err, "the search for it continues")
		stop()
		requireNotRun(t, a, 0, <-searched, asterisque.ErrCanceled)
		a.has(t, "k")
		requireServedBy(t, "a", on)
	})
}

func TestHolder_Replaced(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, a, b, on, at := holders(t)
		c := a.has(t, "k")
		requireServedBy(t, "a", on)
		closed := fenceSessionTo(t)
		closed.Close()
		at.put("a", closed)
		require.NoError(t, c.Release(t.Context()))
		reads := countReads(t, s)
		answer := make(chan error, 1)
		go func() { // ends with its call
			_, err := whoami.Call(context.Background(), on, "")
			answer <- err
		}()
		require.Eventually(t, func() bool { return reads.Load() > 0 }, claimTestTime, claimTick, "it searches")
		b.has(t, "k")
		require.NoError(t, <-answer)
		require.EqualValues(t, 1, b.ran.Load())
	})
}

// The entry of the holder stays until it expires.
func TestHolder_Unreachable(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, a, _, on, at := holders(t)
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
		_, err = whoami.Call(ctx, s.join("other").CallerOf("k", at.at), "")
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
		over, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, c.Release(over), context.Canceled, "its entry stays")
		require.ErrorIs(t, c.Err(), lease.ErrReleased)
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
		s, a, _, _, at := holders(t)
		caller := s.join("final")
		on := caller.CallerOf("k", at.at)
		a.has(t, "k")
		refused := errors.New("not to be called")
		at.byID, at.err = map[string]asterisque.Caller{}, refused
		_, err := whoami.Call(t.Context(), on, "")
		requireNotRun(t, a, 0, err, refused)
		_, err = whoami.Call(t.Context(), caller.CallerOf("k.", at.at), "")
		requireNotRun(t, a, 0, err, asterisque.ErrBadParams)
		require.NoError(t, caller.Close(t.Context()))
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
