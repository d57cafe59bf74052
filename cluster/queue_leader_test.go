package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
)

// leaderless is a bucket with a stream that has no leader for one write.
type leaderless struct {
	jetstream.KeyValue
	refused bool
}

func (k *leaderless) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	if !k.refused {
		k.refused = true
		return 0, jetstream.ErrNoStreamResponse
	}
	return k.KeyValue.Create(ctx, key, value, opts...)
}

func TestQueueResult_NoLeader(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := newBookings(t).customer()
		q, err := c.queueOf(t.Context(), "orders")
		require.NoError(t, err)
		r := posts(t, c, 1, WithDeadline(time.Now().Add(2*time.Second)))
		kv := &leaderless{KeyValue: q.outcomes}
		q.outcomes = kv
		_, err = results(t, c, r)
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.True(t, kv.refused)
	})
}
