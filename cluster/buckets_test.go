package cluster

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
)

// laggard is JetStream on a server that lags behind: for a while it does not know of buckets that
// other nodes have created.
type laggard struct {
	jetstream.JetStream
	asked atomic.Int64
}

func (l *laggard) KeyValue(ctx context.Context, bucket string) (jetstream.KeyValue, error) {
	if l.asked.Add(1) <= 3 {
		return nil, jetstream.ErrBucketNotFound
	}
	return l.JetStream.KeyValue(ctx, bucket)
}

func TestBucket_JustCreated(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "", ""))
		cfg, err := Config{Name: "orders", Durable: &Durable{}}.complete()
		require.NoError(t, err)
		d := newDurables(&cfg, "instance")
		js := &laggard{JetStream: c.buckets.js}
		d.js = js
		bucket, err := d.awaitBucket(t.Context())
		require.NoError(t, err)
		require.Equal(t, "asterisque_main_calls_orders", bucket.Bucket())
		require.EqualValues(t, 4, js.asked.Load())
	})
}
