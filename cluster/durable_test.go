package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

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

func TestDurableLost_PoolRunsAgain(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		got, s := lostUnderWay(t, bookingtest.Rebook)
		require.NoError(t, got.err)
		require.Equal(t, "again", got.text)
		require.EqualValues(t, 2, s.Runs.Load())
	})
}

func TestDurableLost_MayHaveRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		got, s := lostUnderWay(t, bookingtest.Book)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, got.err)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

// lostUnderWay makes a call on one of two nodes. The node is lost while it runs the call.
func lostUnderWay(t *testing.T, f asterisque.Function[int, string]) (outcome, *bookings) {
	s := newBookings(t)
	does := func(ctx context.Context, _ int) (string, error) {
		if s.Runs.Load() > 1 {
			return "again", nil
		}
		<-ctx.Done()
		return "", ctx.Err()
	}
	a, b := s.replica("a", does, leaseOf(time.Second)), s.replica("b", does, leaseOf(time.Second))
	p := callerOf(t, joined(t, config(s.b, "", "")), "orders")
	out := make(chan outcome, 1)
	go func() { // ends with the call
		text, err := f.Call(t.Context(), p, 1, asterisque.WithDurable())
		out <- outcome{text, err}
	}()
	require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, bookingTime, time.Millisecond)
	if a.durable.Running() == 0 {
		a = b
	}
	vanish(a.Cluster)
	return <-out, s
}

func TestDurable_JoinOtherLimits(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		s.replica("a", bookingtest.Answers("at a"))
		cfg := config(s.b, "orders", "b")
		cfg.Durable = &Durable{InMemory: true, Remember: 2 * time.Hour}
		_, err := Join(t.Context(), cfg)
		var other *BucketError
		require.ErrorAs(t, err, &other)
		require.Equal(t, []string{"asterisque_main_calls_orders", "time to live"}, []string{other.Bucket, other.What})
	})
}
