package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestDurableLost_PoolRunsAgain(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		got, s := lostUnderWay(t, bookingtest.Rebook)
		require.NoError(t, got.Err)
		require.Equal(t, "again", got.Text)
		require.EqualValues(t, 2, s.Runs.Load())
	})
}

func TestDurableLost_MayHaveRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		got, s := lostUnderWay(t, bookingtest.Book)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, got.Err)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

// lostUnderWay makes a call on one of two nodes. The node is lost while it runs the call.
func lostUnderWay(t *testing.T, f asterisque.Function[int, string]) (bookingtest.Outcome, *bookings) {
	s := newBookings(t)
	at := make(chan string, 2) // the node that runs the call
	does := func(id string) bookingtest.Handler {
		return func(ctx context.Context, _ int) (string, error) {
			at <- id
			if s.Runs.Load() > 1 {
				return "again", nil
			}
			<-ctx.Done()
			return "", ctx.Err()
		}
	}
	nodes := make(map[string]*replica)
	for _, id := range []string{"a", "b"} {
		nodes[id] = s.replica(id, does(id), leaseOf(time.Second))
	}
	p := callerOf(t, joined(t, config(s.b, "", "")), "orders")
	out := make(chan bookingtest.Outcome, 1)
	go func() { // ends with the call
		text, err := f.Call(t.Context(), p, 1, asterisque.WithDurable())
		out <- bookingtest.Outcome{Text: text, Err: err}
	}()
	vanish(nodes[<-at].Cluster)
	return <-out, s
}

func TestDurable_JoinOtherLimits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.replica("a", bookingtest.Answers("at a"))
		cfg := config(s.b, "orders", "b")
		cfg.Durable = &cluster.Durable{Remember: 2 * time.Hour}
		_, err := cluster.Join(t.Context(), cfg)
		var other *cluster.BucketError
		require.ErrorAs(t, err, &other)
		require.Equal(t, []string{"asterisque_main_calls_orders", "time to live"}, []string{other.Bucket, other.What})
	})
}

func TestDurable_Storage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inMemory bool
		storage  jetstream.StorageType
	}{
		"files":  {false, jetstream.FileStorage},
		"memory": {true, jetstream.MemoryStorage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				s := &bookings{t: t, b: natstest.StartServer(t, broker.Config{Dir: t.TempDir()})}
				a := s.replica("a", bookingtest.Answers("at a"), func(cfg *cluster.Config) { cfg.InMemory = c.inMemory })
				js := jetStream(t, a.Cluster)
				for _, bucket := range []string{"calls_orders", "nodes"} {
					stream, err := js.Stream(t.Context(), "KV_asterisque_main_"+bucket)
					require.NoError(t, err)
					require.Equal(t, c.storage, stream.CachedInfo().Config.Storage, bucket)
				}
			})
		})
	}
}
