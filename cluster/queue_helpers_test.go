package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// queueing makes a node take posted calls, and post with these limits.
func queueing(cfg Config) Config {
	cfg.Queue = &Queue{Calls: 8, Bytes: 1 << 20, Longest: time.Hour}
	if cfg.Name != "" {
		cfg.Durable = &Durable{InMemory: true, Bytes: 1 << 20, Share: 1}
	}
	return cfg
}

// posts posts a call, or fails.
func posts(t testing.TB, c *Cluster, n int, opts ...PostOption) Receipt {
	t.Helper()
	r, err := Post(t.Context(), c, "orders", book, n, opts...)
	require.NoError(t, err)
	return r
}

// waiting returns the number of calls that wait for orders.
func waiting(t testing.TB, c *Cluster) uint64 {
	t.Helper()
	s, err := c.js(t).Stream(t.Context(), "asterisque_main_queue_orders")
	require.NoError(t, err)
	return s.CachedInfo().State.Msgs
}
