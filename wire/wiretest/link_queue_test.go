package wiretest_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/wire/wiretest"
	"github.com/stretchr/testify/require"
)

// A lost segment costs a round trip.
func TestDrop_CostsRoundTrip(t *testing.T) {
	lane := wiretest.Lane{Rate: 100_000, Delay: 50 * time.Millisecond, Queue: 10 * 1448, Drop: true}
	overLink(t, alike(lane), func(b *linkBed) {
		near, far := b.pipe()
		near.Write(make([]byte, 11*1448)) // the last one is lost
		_, err := io.ReadFull(far, make([]byte, 10*1448))
		require.NoError(b, err)
		require.InDelta(b, 0.0500+0.1448, time.Since(b.begin).Seconds(), 1e-6, "the other packets pass")
		_, err = io.ReadFull(far, make([]byte, 1448))
		require.NoError(b, err)
		roundTrip := 0.1448 + 0.1 // the queue, and both delays
		require.InDelta(b, roundTrip+0.0500+0.01448, time.Since(b.begin).Seconds(), 1e-6)
		out, in := b.Stats()
		require.Equal(b, wiretest.LaneStats{Most: 10 * 1448, Passed: 11 * 1448, Dropped: 1}, out)
		require.Zero(b, in)
	})
}

// A Link with Drop transfers at its rate, in jerks.
func TestDrop_RateInJerks(t *testing.T) {
	lane := wiretest.Lane{Rate: 10 * mbit, Delay: 25 * time.Millisecond, Queue: 64 * kib, Drop: true}
	overLink(t, alike(lane), func(b *linkBed) {
		near, far := b.pipe()
		b.flood(near)
		got := b.drain(far)
		longest, last, since := time.Duration(0), int64(0), time.Now()
		for range 10_000 {
			fakeclock.Sleep(time.Millisecond)
			if n := got.now(); n != last {
				longest = max(longest, time.Since(since))
				last, since = n, time.Now()
			}
		}
		within(b, 10*mbit10, float64(last), 0.03, "bytes")
		require.LessOrEqual(b, float64(last), 10*mbit10)
		within(b, 0.05, longest.Seconds(), 0.1, "seconds without a byte, after a loss")
		out, _ := b.Stats()
		require.LessOrEqual(b, out.Most, 64*kib)
		require.InDelta(b, 100, out.Dropped, 5, "one in each of these")
	})
}

// A connection that waits for room after a loss leaves no free queue to others.
func TestDrop_WaitingSpares(t *testing.T) {
	lane := wiretest.Lane{Rate: 10 * mbit, Delay: 25 * time.Millisecond, Queue: 64 * kib, Drop: true}
	overLink(t, alike(lane), func(b *linkBed) {
		near, far := b.pipe()
		b.flood(near)
		b.drain(far)
		fakeclock.Sleep(10 * time.Second)
		other, there := b.pipe()
		took := b.took(other, there, 1448)
		require.InDelta(b, 0.05+0.052+0.025, took.Seconds(), 0.005, "a round trip, the queue, and a delay")
	})
}

// Connections share a Link fairly.
func TestLink_Fair(t *testing.T) {
	for _, n := range []int{2, 5, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			skipRace(t)
			overLink(t, alike(wiretest.Lane{Rate: 10 * mbit, Delay: 25 * time.Millisecond}), func(b *linkBed) {
				var got []*count
				for range n {
					near, far := b.pipe()
					b.flood(near)
					got = append(got, b.drain(far))
				}
				fakeclock.Sleep(10 * time.Second)
				before := make([]int64, n)
				for i, g := range got {
					before[i] = g.now()
				}
				fakeclock.Sleep(30 * time.Second)
				for i, g := range got {
					within(b, 30*mbit10/float64(n), float64(g.now()-before[i]), 0.01, "bytes")
				}
			})
		})
	}
}

// Later segments wait behind the queue.
func TestQueue_FirstInFirstOut(t *testing.T) {
	lane := wiretest.Lane{Rate: 10 * mbit, Delay: 25 * time.Millisecond, Queue: 256 * kib}
	overLink(t, alike(lane), func(b *linkBed) {
		near, far := b.pipe()
		b.flood(near)
		b.drain(far)
		fakeclock.Sleep(10 * time.Second)
		near, far = b.pipe()
		want := 25*time.Millisecond + time.Duration(float64(256*kib)/mbit10*1e9)
		within(b, want.Seconds(), b.took(near, far, 1).Seconds(), 0.01, "seconds of a byte of another connection")
		require.Less(b, b.took(far, near, 1), 26*time.Millisecond, "the other direction is free")
	})
}

// The queue of a Link is bounded.
func TestQueue_Bounded(t *testing.T) {
	for _, queue := range []int{0, 1, 1448, 20_000, 256 * kib, 4 * mib} {
		t.Run(fmt.Sprintf("%d B", queue), func(t *testing.T) {
			lane := wiretest.Lane{Rate: 10 * mbit, Delay: 25 * time.Millisecond, Queue: queue}
			overLink(t, alike(lane), func(b *linkBed) {
				bound := max(queue, 1448)
				if queue == 0 {
					bound = wiretest.DefaultLinkBuffer
				}
				near, far := b.pipe()
				b.flood(near)
				got := b.drain(far)
				for range 1500 {
					fakeclock.Sleep(997 * time.Microsecond)
					out, _ := b.Stats()
					require.LessOrEqual(b, out.Queued, bound)
					require.Greater(b, out.Queued+1448, bound, "a sender that floods fills it")
				}
				out, _ := b.Stats()
				require.LessOrEqual(b, out.Most, bound)
				require.Zero(b, out.Dropped)
				within(b, (time.Since(b.begin)-lane.Delay).Seconds()*mbit10, float64(got.now()), 0.001, "bytes")
			})
		})
	}
}

// Unread bytes stop the sender.
func TestLink_Unread(t *testing.T) {
	overLink(t, alike(wiretest.Lane{Delay: time.Second, Rate: 4 * mib}), func(b *linkBed) {
		near, far := b.pipe()
		b.flood(near)
		fakeclock.Sleep(time.Minute)
		out, _ := b.Stats()
		require.Positive(b, out.Passed)
		stopped := out.Passed
		require.Less(b, stopped, int64(5*mib+mib/2))
		fakeclock.Sleep(time.Minute)
		out, _ = b.Stats()
		require.Equal(b, stopped, out.Passed)
		_, err := io.ReadFull(far, make([]byte, stopped+mib))
		require.NoError(b, err, "reading continues")
	})
}

// A Link without a rate holds 64 MiB of a connection.
func TestLink_Holds64MiB(t *testing.T) {
	skipRace(t)
	overLink(t, alike(wiretest.Lane{Delay: time.Second}), func(b *linkBed) {
		near, far := b.pipe()
		b.flood(near)
		got := b.drain(far)
		fakeclock.Sleep(1500 * time.Millisecond)
		require.EqualValues(b, 64*mib, got.now())
		out, _ := b.Stats()
		require.EqualValues(b, 128*mib, out.Passed)
	})
}

// A Write takes as much as the queue and the buffer hold.
func TestLink_WriteBuffer(t *testing.T) {
	cfg := alike(wiretest.Lane{Rate: 1000, Queue: 100_000})
	cfg.Buffer = 50_000
	overLink(t, cfg, func(b *linkBed) {
		near, _ := b.pipe()
		n := writeUntil(b, near, time.Now().Add(time.Nanosecond))
		require.LessOrEqual(b, n, 150_000)
		require.Greater(b, n, 150_000-1448)
		require.Zero(b, writeUntil(b, near, time.Now().Add(500*time.Millisecond)), "nothing has passed")
		n = writeUntil(b, near, time.Now().Add(10*time.Second))
		require.InDelta(b, 10_500, n, 1448, "what has passed made room")
	})
}

// writeUntil returns how many bytes c takes until a deadline.
func writeUntil(t require.TestingT, c net.Conn, deadline time.Time) int {
	require.NoError(t, c.SetWriteDeadline(deadline))
	n, err := c.Write(make([]byte, 16*mib))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Zero(t, time.Until(deadline))
	return n
}
