package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// awaits starts await for a key in m.
func (m *claimant) awaits(ctx context.Context, key string) (won <-chan *lease.Claim, failed <-chan error) {
	claims, errs := make(chan *lease.Claim, 1), make(chan error, 1)
	go func() { // ends with ctx, or the claims
		c, err := m.Await(ctx, key)
		if err != nil {
			errs <- err
			return
		}
		claims <- c
	}()
	return claims, errs
}

// requireWaiting waits until a key has that number of watchers.
func requireWaiting(t *testing.T, m *claimant, watchers int) {
	t.Helper()
	stream, err := jetStreamOf(t, m.nc).Stream(t.Context(), "KV_claims")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Consumers == watchers
	}, claimTestTime, claimTick)
}

func TestAwaitClaim_Release(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		first, err := a.Await(t.Context(), "k")
		require.NoError(t, err, "a free key is not waited for")
		won, failed := b.awaits(t.Context(), "k")
		same, _ := a.awaits(t.Context(), "k")
		requireWaiting(t, a, 2)
		require.Empty(t, won)
		require.NoError(t, first.Release(t.Context()))
		var second *lease.Claim
		select {
		case second = <-won:
		case second = <-same:
		case err := <-failed:
			require.NoError(t, err)
		}
		require.Greater(t, second.Epoch(), first.Epoch())
		require.NoError(t, second.Release(t.Context()))
		select {
		case <-won:
		case <-same:
		}
	})
}

func TestAwaitClaim_HolderDies(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, time.Second)
		a, b := s.join("a"), s.join("b")
		c := a.has(t, "k")
		won, _ := b.awaits(t.Context(), "k")
		requireWaiting(t, a, 1)
		a.nc.Close()
		require.Greater(t, (<-won).Epoch(), c.Epoch())
		require.ErrorIs(t, c.Err(), lease.ErrLost)
	})
}

func TestAwaitClaim_ContextEnds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		a.has(t, "k")
		ctx, cancel := context.WithCancel(t.Context())
		_, failed := b.awaits(ctx, "k")
		requireWaiting(t, a, 1)
		cancel()
		err := <-failed
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, `waiting for the key "k"`)
		requireWaiting(t, a, 0)
		for wait := claimTick; ; wait *= 2 { // until the context lasts long enough for a request
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			_, err := b.Await(ctx, "k")
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if held := new(heldErr); errors.As(err, &held) {
				require.Equal(t, "a", held.Holder)
				return
			}
		}
	})
}

func TestAwaitClaim_NodeLeaves(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		a.has(t, "k")
		_, failed := b.awaits(t.Context(), "k")
		requireWaiting(t, a, 1)
		require.NoError(t, b.Close(t.Context()))
		err := <-failed
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.ErrorContains(t, err, "nothing is claimed any more: this node has left its cluster")
	})
}

// The holder keeps its claim, too: its lease is longer than the restart.
func TestAwaitClaim_BrokerRestart(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		s := &claimSite{t: t, b: natstest.StartServer(t, broker.Config{Dir: dir}), ttl: longTTL}
		s.makeBucket()
		a, b := s.join("a"), s.join("b")
		c := a.has(t, "k")
		revision := a.revision(t, "k")
		won, failed := b.awaits(t.Context(), "k")
		requireWaiting(t, a, 1)

		again := natstest.Restarted(s.b, dir)
		require.NoError(t, s.b.Close())
		a.renews(t) // in vain
		s.b = natstest.StartServer(t, again)
		a.renews(t)
		require.NoError(t, c.Err())
		require.Greater(t, a.revision(t, "k"), revision)
		require.Empty(t, won)
		require.Empty(t, failed)
		require.NoError(t, c.Release(t.Context()))
		select {
		case next := <-won:
			require.Greater(t, next.Epoch(), c.Epoch())
		case <-time.After(claimTestTime):
			t.Fatal("the waiting node is not notified")
		}
	})
}
