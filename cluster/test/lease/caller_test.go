package lease_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestClaimCaller_EndsWithClaim(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, peer := s.join("a"), s.join("peer")
		c := a.has(t, "k")
		on := c.Caller(peer.callable(t))
		_, err := whoami.Call(t.Context(), on, "")
		require.NoError(t, err)
		a.clock.advance(s.lease())
		_, err = whoami.Call(t.Context(), on, "")
		requireNotRun(t, peer, 1, err, asterisque.ErrUnauthorized)
		require.ErrorIs(t, err, lease.ErrLost)

		d := a.has(t, "d")
		require.NoError(t, d.Release(t.Context()))
		_, err = whoami.Call(t.Context(), d.Caller(peer.callable(t)), "")
		requireNotRun(t, peer, 1, err, asterisque.ErrUnauthorized)
		require.ErrorIs(t, err, lease.ErrReleased)
	})
}

func TestClaimCaller_CancelsCalls(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b, peer := s.join("a"), s.join("b"), s.join("peer")
		c := a.has(t, "k")
		on := c.Caller(peer.callable(t))
		called := make(chan error, 1)
		go func() { // ends with the claim
			_, err := whoami.Call(context.Background(), on, "wait")
			called <- err
		}()
		stream, err := ticks.Open(t.Context(), on, "")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return peer.ran.Load() == 2 }, claimTestTime, claimTick)
		b.takes(t, "k")
		err = <-called
		require.ErrorIs(t, err, asterisque.ErrCanceled)
		require.ErrorIs(t, err, lease.ErrLost)
		require.False(t, asterisque.Repeatable(err))
		_, err = stream.Result(t.Context())
		require.ErrorIs(t, err, asterisque.ErrCanceled)
		require.ErrorIs(t, err, lease.ErrLost)
	})
}

// A call that its own caller cancels reports that.
func TestClaimCaller_OwnCancel(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, peer := s.join("a"), s.join("peer")
		c := a.has(t, "k")
		on := c.Caller(peer.callable(t))
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error, 1)
		go func() { // ends with ctx
			_, err := whoami.Call(ctx, on, "wait")
			called <- err
		}()
		require.Eventually(t, func() bool { return peer.ran.Load() == 1 }, claimTestTime, claimTick)
		cancel()
		err := <-called
		require.ErrorIs(t, err, asterisque.ErrCanceled)
		require.NotErrorIs(t, err, lease.ErrLost)
	})
}

func TestClaimCaller_KeepsMetadata(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		var said asterisque.Metadata
		on := fenceSessionTo(t, asterisque.WithService(a.fenceService()), asterisque.WithInboundInterceptors(
			func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				said = c.Metadata(ctx)
				return next(ctx, c)
			}))
		_, err := whoami.Call(withMark(t.Context(), "user", "alice"), c.Caller(on), "", asterisque.WithMetadata(asterisque.Metadata{"id": "7"}))
		require.NoError(t, err)
		require.Equal(t, asterisque.Metadata{"user": "alice", "id": "7", asHolder: claimMark("k", c.Epoch())}, said)
	})
}

// A claim with a long life keeps no memory of calls and streams that have ended.
func TestClaimCaller_NoLeak(t *testing.T) {
	s := newClaimSite(t, longTTL)
	a, peer := s.join("a"), s.join("peer")
	c := a.has(t, "k")
	on := c.Caller(peer.callable(t))
	round := func() {
		for range 100 {
			_, err := whoami.Call(t.Context(), on, "")
			require.NoError(t, err)
			p, err := ticks.Open(context.Background(), on, "")
			require.NoError(t, err)
			require.NoError(t, p.CloseSend())
			p.Result(t.Context())
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	round()
	before := heap()
	for range 5 {
		round()
	}
	require.Less(t, heap(), before+1000, "there were 1,000 calls, of which each would leave several objects")
}
