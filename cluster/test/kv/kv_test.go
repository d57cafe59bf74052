package kv_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// entries is the configuration of the bucket of these tests.
var entries = jetstream.KeyValueConfig{
	Bucket: "entries", TTL: time.Hour, History: 1, MaxValueSize: 1 << 10, MaxBytes: 1 << 20,
	Storage: jetstream.MemoryStorage, Replicas: 1, Metadata: map[string]string{kv.ClusterKey: "production"},
}

// opened returns JetStream of a new server, and the bucket.
func opened(t *testing.T) (*nats.Conn, jetstream.JetStream, jetstream.KeyValue) {
	t.Helper()
	nc := natstest.Connect(t, natstest.StartServer(t, broker.Config{}))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	bucket, err := kv.Open(t.Context(), js, entries)
	require.NoError(t, err)
	return nc, js, bucket
}

func TestCheck_Limits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, js, _ := opened(t)
		for what, change := range map[string]func(*jetstream.KeyValueConfig){
			"":                   func(*jetstream.KeyValueConfig) {},
			"time to live":       func(c *jetstream.KeyValueConfig) { c.TTL = time.Minute },
			"number of replicas": func(c *jetstream.KeyValueConfig) { c.Replicas = 3 },
			"largest value":      func(c *jetstream.KeyValueConfig) { c.MaxValueSize++ },
		} {
			want := entries
			change(&want)
			bucket, err := kv.Open(t.Context(), js, want)
			require.NoError(t, err, "it exists")
			err = kv.Check(t.Context(), bucket, want)
			if what == "" {
				require.NoError(t, err)
				continue
			}
			var differs *kv.LimitError
			require.ErrorAs(t, err, &differs)
			require.Equal(t, what, differs.What)
		}
		other := entries
		other.Metadata = map[string]string{kv.ClusterKey: "test"}
		bucket, err := kv.Open(t.Context(), js, other)
		require.NoError(t, err)
		require.ErrorIs(t, kv.Check(t.Context(), bucket, other), kv.ErrOtherCluster)
	})
}

func TestStore_Revisions(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		nc, _, bucket := opened(t)
		s, err := kv.NewStore(nc, bucket)
		require.NoError(t, err)
		e, err := s.Read(t.Context(), "a")
		require.NoError(t, err)
		require.Zero(t, e)
		first, err := s.Write(t.Context(), "a", []byte("1"), 0)
		require.NoError(t, err)
		_, err = s.Write(t.Context(), "a", []byte("2"), 0)
		require.True(t, kv.IsConflict(err), err)
		e, err = s.Read(t.Context(), "a")
		require.NoError(t, err)
		require.True(t, e.Exists)
		require.Equal(t, "1", string(e.Value))
		require.NoError(t, s.Remove(t.Context(), "a", first))
		e, err = s.Read(t.Context(), "a")
		require.NoError(t, err)
		require.False(t, e.Exists)
		require.Greater(t, e.Revision, first, "a deletion marker has a revision")
		_, err = s.Write(t.Context(), "a", []byte("3"), 0)
		require.True(t, kv.IsConflict(err), "the marker counts: %v", err)
	})
}

func TestSnapshot_Filter(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		_, _, bucket := opened(t)
		for _, key := range []string{"a.1", "a.2", "b.1"} {
			_, err := bucket.PutString(t.Context(), key, key)
			require.NoError(t, err)
		}
		require.NoError(t, bucket.Delete(t.Context(), "a.2"))
		all, err := kv.Snapshot(t.Context(), bucket, "a.*")
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, jetstream.KeyValueDelete, all[1].Operation())
	})
}
