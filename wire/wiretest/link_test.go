package wiretest_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestLink_Rate(t *testing.T) {
	skipRace(t)
	for _, c := range []struct {
		rate  float64 // bytes a second
		bytes int
	}{
		{10 * kib, 100 * kib},
		{1 * mbit, 1 * mib},
		{10 * mbit, 4 * mib},
		{100 * mbit, 4 * mib},
		{1000 * mbit, 8 * mib},
		{10_000 * mbit, 16 * mib},
	} {
		t.Run(fmt.Sprintf("%.0f kB/s", c.rate/1e3), func(t *testing.T) {
			lane := wiretest.Lane{Rate: int(c.rate), Delay: 25 * time.Millisecond}
			overLink(t, alike(lane), func(b *linkBed) {
				near, far := b.pipe()
				for _, d := range [][2]net.Conn{{near, far}, {far, near}} {
					took := b.took(d[0], d[1], c.bytes) - lane.Delay
					within(b, float64(c.bytes)/c.rate, took.Seconds(), 0.001, "seconds")
				}
			})
		})
	}
}

// A Link without a rate transfers everything at once.
func TestLink_NoRate(t *testing.T) {
	overLink(t, alike(wiretest.Lane{Delay: 25 * time.Millisecond}), func(b *linkBed) {
		near, far := b.pipe()
		require.Equal(b, 25*time.Millisecond, b.took(near, far, 16*mib))
		out, _ := b.Stats()
		require.Equal(b, wiretest.LaneStats{Passed: 16 * mib}, out, "nothing has waited")
	})
}

// The delay of a Link is exact.
func TestLink_Delay(t *testing.T) {
	cfg := wiretest.LinkConfig{
		Out: wiretest.Lane{Delay: 30 * time.Millisecond},
		In:  wiretest.Lane{Delay: 20 * time.Millisecond, Rate: 1000},
	}
	overLink(t, cfg, func(b *linkBed) {
		near, far := b.pipe()
		for range 3 {
			require.Equal(b, 30*time.Millisecond, b.took(near, far, 1))
			require.Equal(b, 21*time.Millisecond, b.took(far, near, 1), "a byte passes in a millisecond")
			require.Equal(b, 120*time.Millisecond, b.took(far, near, 100))
		}
	})
}

// A Link keeps the order.
func TestLink_Order(t *testing.T) {
	for name, lane := range map[string]wiretest.Lane{
		"nothing":      {},
		"jitter":       {Rate: mib, Delay: time.Millisecond, Jitter: 20 * time.Millisecond},
		"a full queue": {Rate: mib, Queue: 3000},
		"losses":       {Rate: mib, Delay: time.Millisecond, Queue: 8 * kib, Drop: true},
	} {
		t.Run(name, func(t *testing.T) {
			overLink(t, alike(lane), func(b *linkBed) {
				near, far := b.pipe()
				sent := data(1 * mib)
				go func() {
					for i, n := 0, 1; i < len(sent); i, n = i+n, n*7%5000+1 {
						near.Write(sent[i:min(i+n, len(sent))])
					}
					near.Close()
				}()
				got, err := io.ReadAll(far)
				require.NoError(b, err)
				require.True(b, bytes.Equal(sent, got))
				out, _ := b.Stats()
				require.EqualValues(b, len(sent), out.Passed)
				require.Equal(b, lane.Drop, out.Dropped > 0)
			})
		})
	}
}

// Jitter delays by up to its value.
func TestLink_Jitter(t *testing.T) {
	lane := wiretest.Lane{Delay: 50 * time.Millisecond, Jitter: 10 * time.Millisecond}
	overLink(t, alike(lane), func(b *linkBed) {
		near, far := b.pipe()
		var least, most time.Duration = time.Hour, 0
		for range 1000 {
			took := b.took(near, far, 1)
			least, most = min(least, took), max(most, took)
		}
		require.InDelta(b, 50, least.Seconds()*1e3, 0.1)
		require.InDelta(b, 60, most.Seconds()*1e3, 0.1)
		require.GreaterOrEqual(b, least, 50*time.Millisecond)
		require.Less(b, most, 60*time.Millisecond)
	})
}

// A Link follows its schedule.
func TestLink_Schedule(t *testing.T) {
	lane := wiretest.Lane{Rate: 1 * mib, Delay: 10 * time.Millisecond, Changes: []wiretest.Change{
		{At: 20 * time.Second, Rate: 4 * mib, Delay: 100 * time.Millisecond},
		{At: 10 * time.Second, Rate: mib / 2, Delay: 10 * time.Millisecond},
		{At: 30 * time.Second, Delay: time.Millisecond},
	}}
	overLink(t, alike(lane), func(b *linkBed) {
		near, far := b.pipe()
		b.flood(near)
		got := b.drain(far)
		for _, want := range []int64{1 * mib, mib / 2, 4 * mib} {
			fakeclock.Sleep(time.Second)
			before := got.now()
			fakeclock.Sleep(8 * time.Second)
			within(b, float64(8*want), float64(got.now()-before), 0.01, "bytes")
			fakeclock.Sleep(time.Second)
		}
	})
	overLink(t, alike(lane), func(b *linkBed) {
		near, far := b.pipe()
		for _, want := range []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Millisecond} {
			require.InDelta(b, want.Seconds(), b.took(near, far, 1).Seconds(), 1e-5)
			fakeclock.Sleep(10*time.Second - want)
		}
	})
	overLink(t, alike(lane), func(b *linkBed) {
		near, far := b.pipe()
		fakeclock.Sleep(9 * time.Second)
		took := b.took(near, far, 2*mib) // of which one passes in the first second
		within(b, 3, took.Seconds(), 0.01, "seconds")
	})
}

func TestLink_Stats(t *testing.T) {
	overLink(t, wiretest.LinkConfig{Out: wiretest.Lane{Rate: 1448}}, func(b *linkBed) {
		near, _ := b.pipe()
		near.Write(make([]byte, 10*1448))
		for i := range 10 {
			out, in := b.Stats()
			require.Equal(b, wiretest.LaneStats{Queued: (10 - i) * 1448, Most: 10 * 1448, Passed: int64(i) * 1448}, out)
			require.Zero(b, in)
			fakeclock.Sleep(time.Second)
		}
	})
}

// The end of a connection crosses the Link.
func TestLink_EndOfPipe(t *testing.T) {
	overLink(t, alike(wiretest.Lane{Delay: time.Second, Rate: 1000}), func(b *linkBed) {
		near, far := b.pipe()
		_, err := near.Write(make([]byte, 3000))
		require.NoError(b, err)
		require.NoError(b, near.Close())
		require.NoError(b, near.Close())
		_, err = near.Write([]byte("x"))
		require.ErrorIs(b, err, net.ErrClosed)
		_, err = near.Read(make([]byte, 1))
		require.ErrorIs(b, err, net.ErrClosed)
		_, err = far.Write([]byte("lost"))
		require.NoError(b, err, "it cannot know yet")
		got, err := io.ReadAll(far)
		require.NoError(b, err)
		require.Len(b, got, 3000)
		require.Equal(b, 4*time.Second, time.Since(b.begin))
		_, err = far.Write([]byte("x"))
		require.ErrorIs(b, err, syscall.EPIPE)
	})
	overLink(t, alike(wiretest.Lane{Rate: 1}), func(b *linkBed) {
		near, far := b.pipe()
		errs := make(chan error, 2)
		go func() { _, err := near.Write(make([]byte, mib)); errs <- err }()
		go func() { _, err := near.Read(make([]byte, 1)); errs <- err }()
		synctest.Wait()
		near.Close()
		require.ErrorIs(b, <-errs, net.ErrClosed)
		require.ErrorIs(b, <-errs, net.ErrClosed)
		require.NoError(b, far.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
		_, err := far.Read(make([]byte, 1))
		require.ErrorIs(b, err, os.ErrDeadlineExceeded)
		require.Equal(b, 500*time.Millisecond, time.Since(b.begin))
	})
}

// A connection behind a Link ends with it.
func TestLink_EndOfConn(t *testing.T) {
	overLink(t, alike(wiretest.Lane{Delay: time.Second}), func(b *linkBed) {
		c, peer := net.Pipe()
		near := b.Conn(c)
		require.Equal(b, c.RemoteAddr(), near.RemoteAddr())
		require.Equal(b, time.Second, b.took(near, peer, 100_000))
		require.Equal(b, time.Second, b.took(peer, near, 100_000))
		go func() {
			near.Write([]byte("farewell"))
			near.Close()
		}()
		got, err := io.ReadAll(peer)
		require.NoError(b, err)
		require.Equal(b, "farewell", string(got))
		require.Equal(b, 3*time.Second, time.Since(b.begin))
	})
	overLink(t, alike(wiretest.Lane{Delay: time.Second}), func(b *linkBed) {
		c, peer := net.Pipe()
		near := b.Conn(c)
		peer.Close()
		_, err := near.Read(make([]byte, 1))
		require.ErrorIs(b, err, io.EOF)
		require.Equal(b, time.Second, time.Since(b.begin))
		near.Close()
	})
}

func TestLink_Suite(t *testing.T) {
	for name, lane := range map[string]wiretest.Lane{
		"without limits": {},
		"slow":           {Rate: 1 << 30, Delay: time.Millisecond, Jitter: time.Millisecond, Queue: 64 * kib},
	} {
		t.Run(name, func(t *testing.T) {
			wiretest.RunInBubbles(t, func(*testing.T) (a, b wire.Wire) {
				p, q := wiretest.NewLink(alike(lane)).Pipe()
				return wire.FromConn(p), wire.FromConn(q)
			}, swallows)
		})
	}
}

// swallows is the check in which a Link accepts bytes without a wait after the reader has stopped,
// until the Close has crossed the Link: the clock of a bubble does not advance meanwhile.
const swallows = "the peer's Close ends a WriteFrames that waits"
