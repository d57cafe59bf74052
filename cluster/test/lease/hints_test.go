package lease_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// requireReads waits until countReads has counted that number of reads, and no more follow at once.
func requireReads(t *testing.T, reads *atomic.Int64, times int64, why string) {
	t.Helper()
	require.Eventually(t, func() bool { return reads.Load() >= times }, claimTestTime, claimTick)
	synctest.Wait()
	require.Equal(t, times, reads.Load(), why)
}

// countReads counts the reads of entries by all clients.
func countReads(t *testing.T, s *claimSite) (reads *atomic.Int64) {
	t.Helper()
	nc, n := s.connect(), new(atomic.Int64)
	_, err := nc.Subscribe(readSubject, func(*nats.Msg) { n.Add(1) })
	require.NoError(t, err)
	require.NoError(t, natstest.Flush(nc))
	return n
}

// hint sends keys to the subject of a node, and returns when they have arrived.
func hint(t *testing.T, s *claimSite, m *claimant, keys ...string) {
	t.Helper()
	nc := s.connect()
	for _, key := range keys {
		require.NoError(t, nc.Publish("hints."+m.node, []byte(key)))
	}
	require.NoError(t, natstest.Flush(nc))
	require.NoError(t, natstest.Flush(m.nc))
}

func TestHints_FalseCostsOneRead(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		reads := countReads(t, s)
		hint(t, s, a, "other", "", "*", string(bytes.Repeat([]byte("k"), 1<<20)), "k", "k", "k")
		requireReads(t, reads, 3, "only for held keys")
		require.NoError(t, c.Err())
	})
}

func TestHints_FloodIsDropped(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		const queue = 1024
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		c := a.has(t, "k")
		flood := slices.Repeat([]string{"k"}, 5*queue)
		withheld, restore := s.withholdReads()
		hint(t, s, a, flood...)
		hint(t, s, a, flood...)
		synctest.Wait()
		require.EqualValues(t, 1, withheld.Load(), "one after the other")
		restore()
		reads := countReads(t, s)
		fakeclock.Sleep(s.lease() / 4) // the first request fails
		require.EqualValues(t, queue, reads.Load(), "the others were dropped")
		for i := range flood {
			flood[i] = fmt.Sprint("k", i%2*i) // is not held
		}
		flood[0] = "k"
		hint(t, s, a, flood...)
		hint(t, s, a, flood...)
		require.NoError(t, c.Err())
		b.takes(t, "k")
		require.Equal(t, "b", requireLost(t, c).Holder, "by a renewal if its hint was dropped")
	})
}

// The connection is lost after hints have arrived.
func TestHints_WithoutNATS(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		withheld, restore := s.withholdReads()
		defer restore()
		hint(t, s, a, "k", "k")
		synctest.Wait()
		require.EqualValues(t, 1, withheld.Load())
		a.nc.Close()
		fakeclock.Sleep(s.lease() / 4) // longer than both requests may take
		require.NoError(t, c.Err())
	})
}

func TestHints_GoneKeyIsChecked(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		require.NoError(t, a.kv.Delete(t.Context(), "k"))
		hint(t, s, a, "k")
		synctest.Wait()
		requireLostBy(t, c, entryGone)
	})
}
