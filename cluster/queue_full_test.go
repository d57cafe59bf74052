package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// written returns a file with a text, such as the configuration of a NATS server.
func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats-server.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// perLook is the polling interval of tests.
const perLook = 10 * time.Millisecond

func TestQueueFull_LargeOutcome(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		s.takes("a", answers(strings.Repeat("x", 1<<20)))
		r := posts(t, c, 1)
		_, err := results(t, c, r)
		requireMayHaveRun(t, asterisque.ErrOverloaded, err)
		require.ErrorContains(t, err, "too large")
		require.Eventually(t, func() bool { return waiting(t, c) == 0 }, natstest.Timeout, perLook)
		require.EqualValues(t, 1, s.runs.Load())
	})
}

func TestQueueFull_NoRoom(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		var receipts []Receipt
		for n := range 5 {
			receipts = append(receipts, posts(t, c, n))
		}
		var all sync.WaitGroup // they run together
		all.Add(len(receipts))
		a := s.takes("a", func(_ context.Context, n int) (string, error) {
			if n < len(receipts) {
				all.Done()
				all.Wait()
			}
			return strings.Repeat("x", 400<<10), nil
		}, func(c *Config) { c.Durable.Bytes, c.times.queueLook = 16<<20, 100*time.Millisecond })
		kept := 0
		for _, r := range receipts {
			_, err := results(t, c, r)
			if err == nil {
				kept++
				continue
			}
			requireMayHaveRun(t, asterisque.ErrOverloaded, err)
		}
		require.Equal(t, 3, kept, "the limit, with the reserve")
		fakeclock.Sleep(2 * time.Second) // the room is read again
		ran := s.runs.Load()
		r := posts(t, c, 99)
		require.Never(t, func() bool { return s.runs.Load() > ran }, time.Second, perLook)
		stream, err := a.js(t).Stream(t.Context(), "KV_asterisque_main_results_orders")
		require.NoError(t, err)
		require.NoError(t, stream.Purge(t.Context()))
		text, err := results(t, c, r)
		require.NoError(t, err)
		require.Len(t, text, 400<<10)
	})
}

func TestQueue_OutcomeLimits(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Config){
		"number of bytes":    func(c *Config) { c.Queue.Bytes = 2 << 20 },
		"time to live":       func(c *Config) { c.Queue.Longest = 2 * time.Hour },
		"number of replicas": func(c *Config) { c.Replicas = 3 },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				c := joined(t, queueing(config(natstest.StartServer(t, broker.Config{}), "", "")))
				posts(t, c, 1)
				bucket := "asterisque_main_results_orders"
				want := c.cfg
				plan := *c.cfg.Queue
				want.Queue = &plan
				change(&want)
				other := &Cluster{cfg: want, buckets: c.buckets}
				have, err := c.js(t).Stream(t.Context(), "KV_"+bucket)
				require.NoError(t, err)
				err = other.checkOutcomes(bucket, have.CachedInfo().Config, other.outcomesStream(bucket, *want.Queue), true)
				var differs *kv.LimitError
				require.ErrorAs(t, err, &differs)
				require.Equal(t, bucket, differs.Bucket)
				require.Equal(t, what, differs.What)
				require.NotEqual(t, differs.Want, differs.Have)
			})
		})
	}
}

func TestQueue_JoinOtherOutcomes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		posts(t, c, 1)
		stream, err := c.js(t).Stream(t.Context(), "KV_asterisque_main_results_orders")
		require.NoError(t, err)
		smaller := stream.CachedInfo().Config
		smaller.MaxBytes = 1 << 20
		_, err = c.js(t).UpdateStream(t.Context(), smaller)
		require.NoError(t, err)
		_, err = Join(t.Context(), queueing(config(s.b, "orders", "a")))
		var differs *BucketError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, BucketError{"asterisque_main_results_orders", "number of bytes", "1310736", "1048576"}, *differs)
	})
}

func TestQueue_WithoutJetStream(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{ConfigFile: written(t, "accounts { asterisque { users: [ { user: all, password: secret } ] } }\nno_auth_user: all")})
		_, err := Join(t.Context(), queueing(config(b, "orders", "a")))
		require.ErrorIs(t, err, ErrNoJetStream)
	})
}

func TestQueue_PeerRefused(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		_, err := Join(t.Context(), queueing(config(s.b, "orders", "a")), asterisque.WithAccess(asterisque.Access{
			Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
				return nil, asterisque.ErrUnauthorized
			},
		}))
		require.ErrorIs(t, err, asterisque.ErrUnauthorized)
		require.ErrorContains(t, err, `"queue"`)
	})
}

func TestQueue_UnknownClass(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		posts(t, c, 1)
		for _, class := range []string{"3", "-1", "x"} {
			_, err := c.buckets.js.Publish(t.Context(), c.queueSubject("orders")+"."+class, nil, jetstream.WithRetryAttempts(0))
			require.ErrorIs(t, err, jetstream.ErrNoStreamResponse, class)
		}
		require.EqualValues(t, 1, waiting(t, c))
	})
}

func TestQueue_ErrorOfExpiredPost(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		_, expired := (&callOutcome{State: outcomeExpired}).answer()
		requireUnused(t, asterisque.ErrExpired, expired)
		fails := func(context.Context, int) (string, error) { return "", expired }
		a, b := s.replica("a", fails), s.replica("b", answers("at b"))
		key := aKey()
		for _, r := range []*replica{a, b} {
			_, err := r.books(key)
			requireMayHaveRun(t, asterisque.ErrExpired, err)
		}
		require.EqualValues(t, 1, s.runs.Load())
	})
}
