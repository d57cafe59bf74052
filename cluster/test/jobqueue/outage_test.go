package jobqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// lasting returns bookings with a NATS server that can be restarted, and the function for the
// restart.
func lasting(t *testing.T) (s *bookings, again func()) {
	s, after := newLastingBookings(t)
	return s, func() {
		require.NoError(t, s.b.Close())
		s.b = natstest.StartServer(t, after)
	}
}

func TestQueueOutage_PostAndRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		const calls = 200
		s, again := lasting(t)
		var done register
		s.takes("a", done.at("a"), roomy, inFiles, handedOutSoon)
		s.takes("b", done.at("b"), roomy, inFiles, handedOutSoon)
		c := s.customer(roomy)
		receipts, half := make(chan string, calls), make(chan struct{})
		go func() { // ends when all are posted, or the test does
			defer close(receipts)
			for n := range calls {
				if n == calls/2 {
					close(half)
				}
				if r := postsAtLast(t, c, n); r != "" {
					receipts <- r
				}
			}
		}()
		<-half
		again()
		n := 0
		for r := range receipts {
			_, err := results(t, c, r)
			require.NoError(t, err)
			n++
		}
		require.Equal(t, calls, n)
		done.requireOnce(t, calls)
		soonWaiting(t, c, 0)
	})
}

// postsAtLast retries a post until it succeeds. It returns "" if the test has ended.
func postsAtLast(t *testing.T, c *member, n int) string {
	for times := 0; ; times++ {
		r, _ := post(t.Context(), c, "orders", bookingtest.Book, n)
		if r != "" || !wait.HoldOff(t.Context(), kv.Backoff(times)) {
			return r
		}
	}
}

func TestQueueOutage_DuringRun(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, again := lasting(t)
		f, release := bookingtest.Holds("booked")
		s.takes("a", f, inFiles, handedOutSoon)
		s.takes("b", f, inFiles, handedOutSoon)
		c := s.customer()
		r := posts(t, c, 1)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, perLook)
		again()
		release()
		requireResult(t, "booked", c, r)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestQueueOutage_Answer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, after := newLastingBookings(t)
		f, release := bookingtest.Holds("booked")
		s.takes("a", f, inFiles, handedOutSoon)
		c := s.customer()
		r := posts(t, c, 1)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, perLook)
		require.NoError(t, s.b.Close())
		release()
		asked := make(chan error, 1)
		go func() { // ends when NATS is back
			_, err := results(t, c, r)
			asked <- err
		}()
		natstest.StartServer(t, after)
		require.NoError(t, <-asked)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestQueueOutage_Result(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s, after := newLastingBookings(t)
		f, release := bookingtest.Holds("booked")
		taker := func(c *settings) { inFiles(c); c.Durable.Lease = time.Second }
		a := s.takes("a", f, taker)
		c := s.customer()
		r := posts(t, c, 1)
		require.Eventually(t, func() bool { return s.Runs.Load() == 1 }, natstest.Timeout, perLook)
		b := s.takes("b", f, taker)
		require.NoError(t, s.b.Close())
		release()
		require.Eventually(t, func() bool { return a.durable.Running() == 0 }, natstest.Timeout, perLook, "for a lease")
		natstest.StartServer(t, after)
		require.Eventually(t, b.nc.IsConnected, natstest.Timeout, perLook)
		requireResult(t, "booked", c, r)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestQueueOutage_ServerLost(t *testing.T) {
	t.Parallel()
	all, urls := natstest.ThreeServers(t)
	s := &bookings{t: t, b: all[0]}
	three := func(c *settings) { c.URLs, c.Replicas = urls, 3 }
	c := s.customer(three)
	// three busy servers may open the queue later than a post waits for it
	receipts := []string{postsAtLast(t, c, 0)}
	for n := 1; n <= 5; n++ {
		receipts = append(receipts, posts(t, c, n))
	}
	queue, err := c.js.Stream(t.Context(), queueStream)
	require.NoError(t, err)
	leader := queue.CachedInfo().Cluster.Leader
	require.NoError(t, all[leader[0]-'a'].Close())
	var done register
	s.takes("a", done.at("a"), three, inFiles)
	for _, r := range receipts {
		ctx, cancel := context.WithTimeout(t.Context(), natstest.Timeout)
		_, err := resultOf(ctx, c, bookingtest.Book, r)
		cancel()
		require.NoError(t, err)
	}
	done.requireOnce(t, len(receipts))
}
