package lease_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestRenew_OutlivesTTL(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, 2*time.Second)
		a := s.join("a")
		c := a.has(t, "k")
		revision, begin := a.revision(t, "k"), time.Now()
		for range 4 {
			a.renews(t)
		}
		require.Greater(t, time.Since(begin), s.ttl)
		require.Equal(t, revision+4, a.revision(t, "k"))
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
		on := a.callable(t)
		c := a.has(t, "k")
		forHolder := withMark(t.Context(), toHolder, claimMark("k", c.Epoch()))
		a.clock.advance(s.lease() - time.Minute)
		require.NoError(t, c.Err())
		_, err := whoami.Call(forHolder, on, "")
		require.NoError(t, err)
		a.clock.advance(time.Minute)
		_, err = whoami.Call(forHolder, on, "")
		requireNotRun(t, a, 1, err, asterisque.ErrUnavailable)
		requireLostBy(t, c, stoodStill)
		<-c.Done()
		a.clock.advance(-longTTL)
		require.ErrorIs(t, c.Err(), lease.ErrLost, "once and for all")
		require.ErrorIs(t, c.Release(t.Context()), lease.ErrLost)
	})
}

// The monotonic clock stops while a machine is suspended.
func TestRenew_MachineSuspended(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		a.clock.wallOnly.Store(true)
		a.clock.advance(-time.Hour)
		require.NoError(t, c.Err(), "a clock that is set back does nothing")
		a.clock.advance(time.Hour + longTTL)
		requireLostBy(t, c, stoodStill)
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
		var during error
		a.writes(t, func() {
			a.clock.advance(s.lease())
			during = c.Err()
		})
		require.ErrorIs(t, during, lease.ErrLost)
		require.ErrorIs(t, c.Err(), lease.ErrLost)
	})
}

// A lease counts from before its request was sent.
func TestRenew_CountsFromBegin(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		revision := a.revision(t, "k")
		a.writes(t, func() { a.clock.advance(s.lease() - time.Minute) })
		require.Equal(t, revision+1, a.revision(t, "k"))
		require.NoError(t, c.Err())
		a.clock.advance(time.Minute - 1)
		require.NoError(t, c.Err())
		a.clock.advance(1)
		require.ErrorIs(t, c.Err(), lease.ErrLost)
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
		require.EqualValues(t, 2, a.revision(t, "k"))
	})
}

func TestRenew_LostAnswer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		first := a.revision(t, "k")
		a.kv.Fail(nil, natstest.ErrLostAnswer)
		lost := a.renews(t)
		require.Equal(t, first+1, a.revision(t, "k"), "it has arrived")
		a.kv.Fail(nil, nil)

		again := a.writes(t, func() {}, func() {})
		require.Equal(t, s.retryDelay(), again[0].Sub(lost))
		require.Equal(t, again[0], again[1], "at once, after it has found the one before")
		require.Equal(t, first+2, a.revision(t, "k"))
		require.NoError(t, c.Err())

		next := a.renews(t)
		require.Greater(t, next.Sub(again[1]), s.retryDelay())
		require.Equal(t, first+3, a.revision(t, "k"))
		a.clock.advance(s.lease() - 1)
		require.NoError(t, c.Err(), "it counts from the last renewal")
		a.clock.advance(1)
		requireLostBy(t, c, stoodStill)
	})
}

// A renewal without an answer does not extend the lease, as its start is unknown.
func TestRenew_LostAnswerCountsNothing(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		begin := time.Now()
		c := a.has(t, "k")
		a.kv.Fail(nil, natstest.ErrLostAnswer)
		a.renews(t)
		a.kv.Fail(nil, nil)
		var before, after error
		a.writes(t, func() {}, func() { // the one before was found
			a.clock.advance(s.lease() - time.Since(begin) - 1)
			before = c.Err()
			a.clock.advance(1)
			after = c.Err()
		})
		require.NoError(t, before)
		require.ErrorIs(t, after, lease.ErrLost)
		require.ErrorIs(t, after, natstest.ErrLostAnswer)
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
		require.ErrorIs(t, c.Err(), lease.ErrLost)
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
		revision := a.revision(t, "k")
		a.kv.Fail(natstest.ErrLostAnswer, nil)
		failed := a.renews(t)
		require.Equal(t, revision, a.revision(t, "k"))
		a.kv.Fail(nil, nil)
		require.Equal(t, s.retryDelay(), a.renews(t).Sub(failed), "it is tried again soon")
		require.Equal(t, revision+1, a.revision(t, "k"))
		require.NoError(t, c.Err())
		a.clock.advance(s.lease())
		requireLostBy(t, c, stoodStill) // and not the outage, which is over
	})
}

func TestRenew_KeyTaken(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b", withoutHints)
		c := a.has(t, "k")
		next := b.takes(t, "k")
		synctest.Wait()
		require.NoError(t, c.Err(), "without a hint")
		a.renews(t)
		require.Error(t, c.Err(), "at its first renewal")
		require.Equal(t, lease.Lost{Key: "k", Epoch: c.Epoch(), Holder: "b", HolderEpoch: next.Epoch()}, requireLost(t, c).Lost)
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
			a.renews(t)
			requireLostBy(t, c, entryGone)
		}
	})
}

// A server that lags behind returns a revision as the last one that another server has denied.
func TestRenew_Contradiction(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		claimed string // the entry is that of an earlier claim by this node
		renewed bool   // the entry is that before the last renewal
	}{
		"last revision":         {},
		"before a renewal":      {renewed: true},
		"own earlier claim":     {claimed: "a"},
		"another earlier claim": {claimed: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				s := newClaimSite(t, longTTL)
				a := s.join("a")
				var entry []byte
				if test.claimed != "" {
					earlier := map[string]*claimant{"a": a, "b": s.join("b")}[test.claimed].has(t, "k")
					entry = s.rawEntry("k")
					require.NoError(t, earlier.Release(t.Context()))
				}
				c := a.has(t, "k")
				if test.claimed == "" {
					entry = s.rawEntry("k")
				}
				if test.renewed {
					a.renews(t)
				}
				var reads atomic.Int64
				s.divertReads(func(m *nats.Msg) {
					reads.Add(1)
					m.Respond(entry)
				})
				a.kv.Fail(jetstream.ErrKeyRevisionMismatch, nil)
				at := a.writes(t, func() {}, func() {})
				require.Equal(t, s.retryDelay(), at[1].Sub(at[0]))
				require.NoError(t, c.Err())
				hint(t, s, a, "k")
				synctest.Wait()
				require.EqualValues(t, 3, reads.Load())
				require.NoError(t, c.Err())
				a.clock.advance(s.lease())
				require.ErrorIs(t, c.Err(), lease.ErrLost)
				require.ErrorContains(t, c.Err(), "it says that its entry is not revision")
			})
		})
	}
}
