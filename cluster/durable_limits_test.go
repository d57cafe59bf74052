package cluster

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
)

// remembers limits the records of replicas.
func remembers(calls, bytes int64) func(*Config) {
	return func(c *Config) { c.Durable.Calls, c.Durable.Bytes = calls, bytes }
}

func TestDurableFull_ByCalls(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, b := s.replica("a", answers("at a"), remembers(3, 0)), s.replica("b", answers("at b"), remembers(3, 0))
		var keys [][]byte
		for range 3 {
			keys = append(keys, aKey())
			_, err := a.books(keys[len(keys)-1])
			require.NoError(t, err)
		}
		_, err := b.books(aKey())
		requireUnused(t, asterisque.ErrOverloaded, err)
		for _, key := range keys {
			text, err := b.books(key)
			require.NoError(t, err, "which are there")
			require.Equal(t, "at a", text)
		}
		require.EqualValues(t, 3, s.runs.Load())
	})
}

func TestDurableFull_Answer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := holds("at a")
		a, b := s.replica("a", f, remembers(1, 0)), s.replica("b", answers("at b"), remembers(1, 0))
		key := aKey()
		first := s.begins(a, key, 1)
		_, err := b.books(aKey())
		requireUnused(t, asterisque.ErrOverloaded, err)
		release()
		requireText(t, "at a", first)
		text, err := b.books(key)
		require.NoError(t, err)
		require.Equal(t, "at a", text)
	})
}

func TestDurableFull_ByBytes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		large := strings.Repeat("x", 600<<10)
		a := s.replica("a", answers(large), remembers(0, 1<<20))
		a.durable.shares.most.bytes *= 2
		a.durable.room = kv.NewRoom(math.MaxInt64, math.MaxInt64, a.durable.look)
		keys := [][]byte{aKey(), aKey(), aKey()}
		for _, key := range keys {
			text, err := a.books(key)
			require.NoError(t, err, "a lets all in")
			require.Len(t, text, len(large))
		}
		b := s.replica("b", answers("at b"), remembers(0, 1<<20))
		_, err := b.books(aKey())
		requireUnused(t, asterisque.ErrOverloaded, err)
		for _, key := range keys[:2] {
			text, err := b.books(key)
			require.NoError(t, err)
			require.Len(t, text, len(large))
		}
		_, err = b.books(keys[2])
		requireMayHaveRun(t, asterisque.ErrOverloaded, err)
	})
}

func TestDurable_AnswerTooLarge(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a, b := s.replica("a", answers(strings.Repeat("x", 1<<20))), s.replica("b", answers("at b"))
		key := aKey()
		text, err := a.books(key)
		require.NoError(t, err)
		require.Len(t, text, 1<<20)
		_, err = b.books(key)
		requireMayHaveRun(t, asterisque.ErrOverloaded, err)
		require.EqualValues(t, 1, s.runs.Load())
	})
}

func TestDurable_OtherLimits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.replica("a", answers("at a"))
		for what, change := range map[string]func(d *Durable){
			"time to live":      func(d *Durable) { d.Remember *= 2 },
			"number of entries": func(d *Durable) { d.Calls = 5 },
			"number of bytes":   func(d *Durable) { d.Bytes = 2 << 20 },
			"storage":           func(d *Durable) { d.InMemory = false },
		} {
			cfg := config(s.b, "orders", "b")
			cfg.Durable = &Durable{InMemory: true, Lease: longestLease, Remember: 2 * longestLease}
			change(cfg.Durable)
			_, err := Join(t.Context(), cfg)
			var other *BucketError
			require.ErrorAs(t, err, &other, what)
			require.Equal(t, []string{"asterisque_main_calls_orders", what}, []string{other.Bucket, other.What})
		}
	})
}

func TestDurable_DiscardOld(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		js := s.replica("a", answers("at a"), func(c *Config) { c.Durable = nil }).js(t)
		cfg := config(s.b, "orders", "b")
		d, err := Durable{InMemory: true}.complete()
		require.NoError(t, err)
		cfg.Durable = &d
		complete, err := cfg.complete()
		require.NoError(t, err)
		stream := newDurables(&complete, "").stream()
		stream.Discard = jetstream.DiscardOld
		_, err = js.CreateStream(t.Context(), stream)
		require.NoError(t, err)
		_, err = Join(t.Context(), cfg)
		require.ErrorContains(t, err, "policy of discarding")
	})
}

func TestDurable_OtherCluster(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		d := s.replica("a", answers("at a")).durable
		stream := d.stream()
		stream.Metadata = map[string]string{kv.ClusterKey: "other"}
		_, err := d.js.UpdateStream(t.Context(), stream)
		require.NoError(t, err)
		cfg := config(s.b, "orders", "b")
		cfg.Durable = &Durable{InMemory: true, Lease: longestLease, Remember: 2 * longestLease}
		_, err = Join(t.Context(), cfg)
		require.ErrorIs(t, err, ErrOtherCluster)
	})
}

func TestDurableConfig_Errors(t *testing.T) {
	t.Parallel()
	for text, d := range map[string]Durable{
		"Durable.Lease is 1ms":    {Lease: 1e6},
		"Durable.Remember is 1s":  {Remember: 1e9},
		"Durable.Calls is -1":     {Calls: -1},
		"Durable.Bytes is 5":      {Bytes: 5},
		"Durable.Share is 1.5":    {Share: 1.5},
		"Config.Durable is set":   {},
		"Durable.Lease is 1h0m0s": {Lease: 3600e9},
	} {
		_, err := Join(context.Background(), Config{Durable: &d})
		require.ErrorContains(t, err, text)
	}
}
