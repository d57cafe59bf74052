package lease

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// requireReads waits until countReads has counted that number of reads.
func requireReads(t *testing.T, reads *atomic.Int64, times int64, why string) {
	t.Helper()
	require.Eventually(t, func() bool { return reads.Load() >= times }, claimTestTime, claimTick)
	require.Equal(t, times, reads.Load(), why)
}

// countReads counts the reads of entries by all clients.
func countReads(t *testing.T, s *claimSite) (reads *atomic.Int64) {
	t.Helper()
	nc, n := s.connect(), new(atomic.Int64)
	_, err := nc.Subscribe("$JS.API.STREAM.MSG.GET.KV_claims", func(*nats.Msg) { n.Add(1) })
	require.NoError(t, err)
	require.NoError(t, natstest.Flush(nc))
	return n
}

// hint sends keys to the subject of a node, and returns when they have arrived.
func hint(t *testing.T, s *claimSite, m *claimant, keys ...string) {
	t.Helper()
	nc := s.connect()
	for _, key := range keys {
		require.NoError(t, nc.Publish("hints."+m.self.node, []byte(key)))
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
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		c := a.has(t, "k")
		flood := make([]string, 5*maxHints)
		for i := range flood {
			flood[i] = fmt.Sprint("k", i%2*i) // every second key is not held
		}
		flood[0] = "k"
		hint(t, s, a, flood...)
		hint(t, s, a, flood...)
		require.NoError(t, c.Err())
		require.Equal(t, maxHints, cap(a.hinted))
		b.takes(t, "k")
		c.renew() // if its hint was dropped
		require.Equal(t, "b", requireLost(t, c).Holder)
	})
}

func TestHints_WithoutNATS(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		c := a.has(t, "k")
		a.nc.Close()
		c.verify()
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
		require.ErrorIs(t, requireLost(t, c), errGone)
	})
}
