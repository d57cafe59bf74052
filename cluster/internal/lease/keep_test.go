package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestRenew_OutlivesTTL(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, 2*time.Second)
		a := s.join("a")
		c := a.has(t, "k")
		revision, _, _ := c.state()
		require.Eventually(t, func() bool {
			now, _, _ := c.state()
			return now > revision+2
		}, claimTestTime, 10*time.Millisecond, "three renewals, each about 0.6 s after the one before")
		require.NoError(t, c.Err())
		require.NoError(t, c.Release(t.Context()))
	})
}

// The process is stopped for a while: its clock advances, and no code of it runs.
func TestRenew_ProcessPaused(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		a.clock.advance(a.lease() - time.Minute)
		require.NoError(t, c.Err())
		require.True(t, a.holds("k", c.Epoch()))
		a.clock.advance(time.Minute)
		require.False(t, a.holds("k", c.Epoch()))
		require.ErrorIs(t, c.Err(), ErrLost)
		require.ErrorIs(t, c.Err(), errStoodStill)
		<-c.Done()
		a.clock.advance(-longTTL)
		require.ErrorIs(t, c.Err(), ErrLost, "once and for all")
		require.ErrorIs(t, c.Release(t.Context()), ErrLost)
	})
}

// The monotonic clock stops while a machine is suspended.
func TestRenew_MachineSuspended(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		a.cfg.Now = func() time.Time { return time.Now().Add(longTTL).Round(0) }
		require.ErrorIs(t, c.Err(), errStoodStill)
		begin := time.Now()
		a.cfg.Now = func() time.Time { return begin.Add(-time.Hour).Round(0) }
		require.Equal(t, -time.Hour, a.since(begin), "one that is set back does nothing else")
	})
}

// The answer to a renewal arrives after the lease has expired, and after the claim has reported the
// loss.
func TestRenew_LateAnswer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		a.clock.advance(a.lease() - time.Minute)
		a.kv.Once(func() {
			a.clock.advance(time.Minute)
			require.ErrorIs(t, c.Err(), ErrLost)
		})
		c.renew()
		require.ErrorIs(t, c.Err(), ErrLost)
	})
}

// A lease counts from before its request was sent.
func TestRenew_CountsFromBegin(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		a.kv.Once(func() { a.clock.advance(a.lease() - time.Minute) })
		c.renew()
		require.NoError(t, c.Err())
		a.clock.advance(time.Minute)
		require.ErrorIs(t, c.Err(), ErrLost)
	})
}

// A claim counts from before its request was sent.
func TestClaim_TooSlow(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		a.kv.Once(func() { a.clock.advance(longTTL) })
		c := a.has(t, "k") // in another attempt
		require.NoError(t, c.Err())
		revision, _, _ := c.state()
		require.EqualValues(t, 2, revision)
	})
}

func TestRenew_LostAnswer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		first, begun, _ := c.state()
		a.kv.Fail(nil, natstest.ErrLostAnswer)
		require.Equal(t, c.soon(), c.renew())
		a.kv.Fail(nil, nil)

		require.Zero(t, c.renew(), "the one before has arrived")
		found, renewed, trouble := c.state()
		require.Equal(t, first+1, found)
		require.Equal(t, begun, renewed, "when it began is not known, so that it counts for nothing")
		require.Error(t, trouble)

		fakeclock.Sleep(time.Second)
		require.Greater(t, c.renew(), c.soon())
		last, renewed, trouble := c.state()
		require.Equal(t, first+2, last)
		require.True(t, renewed.After(begun))
		require.NoError(t, trouble)
		require.NoError(t, c.Err())
	})
}

func TestRenew_LongOutage(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, time.Second)
		a, b := s.join("a"), s.join("b")
		c := a.has(t, "k")
		a.kv.Fail(natstest.ErrLostAnswer, nil)
		next, err := b.Await(t.Context(), "k")
		require.NoError(t, err)
		require.ErrorIs(t, c.Err(), ErrLost)
		require.ErrorIs(t, c.Err(), natstest.ErrLostAnswer)
		require.ErrorContains(t, c.Err(), "NATS did not renew it in time")
		require.Greater(t, next.Epoch(), c.Epoch())
	})
}

func TestRenew_ShortOutage(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, 4*time.Second)
		a := s.join("a")
		c := a.has(t, "k")
		a.kv.Fail(natstest.ErrLostAnswer, nil)
		failed := func() bool { _, _, trouble := c.state(); return trouble != nil }
		require.Eventually(t, failed, claimTestTime, time.Millisecond)
		a.kv.Fail(nil, nil)
		require.Eventually(t, func() bool { return !failed() }, claimTestTime, time.Millisecond, "it is tried again soon")
		require.NoError(t, c.Err())
	})
}

func TestRenew_KeyTaken(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		c := a.has(t, "k")
		b.cfg.Hints = "nowhere"
		next := b.takes(t, "k")
		require.NoError(t, c.Err(), "without a hint")
		c.renew()
		require.Equal(t, Lost{Key: "k", Epoch: c.Epoch(), Holder: "b", HolderEpoch: next.Epoch()}, requireLost(t, c).Lost)
	})
}

func TestRenew_EntryGone(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		for name, remove := range map[string]func(key string) error{
			"deleted": func(key string) error { return a.kv.Delete(t.Context(), key) },
			"purged":  func(key string) error { return a.kv.Purge(t.Context(), key) },
		} {
			c := a.has(t, name)
			require.NoError(t, remove(name))
			c.renew()
			require.ErrorIs(t, requireLost(t, c), errGone, name)
		}
	})
}

// A server that lags behind returns a revision as the last one that another server has denied.
func TestRenew_Contradiction(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		revision, _, _ := c.state()
		require.Equal(t, c.soon(), c.lookAt(revision))
		require.NoError(t, c.Err())
		require.Equal(t, c.soon(), c.lookAt(revision+1))
		c.epoch++ // so that the entry is that of a claim before
		require.Equal(t, c.soon(), c.lookAt(revision-1))
		c.verify()
		require.NoError(t, c.Err())
	})
}
