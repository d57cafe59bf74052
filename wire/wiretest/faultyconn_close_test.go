package wiretest_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/wire/wiretest"
	"github.com/stretchr/testify/require"
)

// A cut loses the bytes in flight.
func TestCut_LosesInFlight(t *testing.T) {
	inBubble(t, both(wiretest.Direction{Delay: time.Second}), func(b *bed) {
		here, there := b.collect(b.f), b.collect(b.peer)
		b.send(b.f, data(100), 100)
		b.send(b.peer, data(100), 100)
		fakeclock.Sleep(time.Second / 2)
		b.f.Cut()
		require.ErrorIs(b, here.now().err, syscall.ECONNRESET)
		require.Equal(b, io.EOF, there.now().err)
		require.Empty(b, here.now().data)
		require.Empty(b, there.now().data)
		require.NoError(b, b.f.Close())
		_, err := b.f.Read(make([]byte, 1))
		require.ErrorIs(b, err, net.ErrClosed)
	})
}

// A cut ends waiting calls.
func TestCut_EndsWaits(t *testing.T) {
	for name, prepare := range map[string]func(f *wiretest.Conn){
		"for the peer": func(*wiretest.Conn) {}, "in a stall": (*wiretest.Conn).Stall,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, wiretest.Faults{}, func(b *bed) {
				prepare(b.f)
				here, sent := b.collect(b.f), b.send(b.f, data(100), 100)
				require.False(b, here.now().done || sent.now().done)
				b.f.Cut()
				require.ErrorIs(b, here.now().err, syscall.ECONNRESET)
				require.ErrorIs(b, sent.now().err, syscall.ECONNRESET)
			})
		})
	}
}

// Close lets the bytes in flight arrive.
func TestClose_InFlightArrives(t *testing.T) {
	d := wiretest.Direction{Delay: time.Second, Bandwidth: 10_000}
	inBubble(t, wiretest.Faults{Out: d}, func(b *bed) {
		got, sent := b.collect(b.peer), b.send(b.f, data(50_000), 50_000)
		require.True(b, sent.now().done)
		closing := b.collect(b.f)
		require.NoError(b, b.f.Close())
		require.Equal(b, 6*time.Second, time.Since(b.begin), "Close waits for it")
		require.Equal(b, data(50_000), got.now().data)
		require.Equal(b, io.EOF, got.now().err)
		require.ErrorIs(b, closing.now().err, net.ErrClosed)
		require.Zero(b, closing.now().took, "Read does not")
	})
}

// Close recalls bytes for which the connection had no room.
func TestClose_RecallsWrite(t *testing.T) {
	inBubble(t, wiretest.Faults{Out: wiretest.Direction{Delay: time.Second}}, func(b *bed) {
		got, fits := b.collect(b.peer), b.send(b.f, data(1<<20), 1<<20)
		require.True(b, fits.now().done)
		waits := b.send(b.f, data(100), 100)
		require.False(b, waits.now().done)
		require.NoError(b, b.f.Close())
		require.ErrorIs(b, waits.now().err, net.ErrClosed)
		require.Zero(b, waits.now().n)
		require.Equal(b, time.Second, time.Since(b.begin))
		require.Len(b, got.now().data, 1<<20)
	})
}

// Close waits a second for a peer that does not read.
func TestClose_PeerNotReading(t *testing.T) {
	inBubble(t, both(wiretest.Direction{Delay: time.Minute}), func(b *bed) {
		require.True(b, b.send(b.f, data(1<<20), 1<<20).now().done)
		require.NoError(b, b.f.Close())
		require.Equal(b, time.Minute+time.Second, time.Since(b.begin))
	})
}

// Close does not wait for bytes that cannot arrive.
func TestClose_StalledIsLost(t *testing.T) {
	for name, do := range map[string]func(b *bed){
		"in a stall":         func(b *bed) { b.f.Stall() },
		"half-open":          func(b *bed) { b.f.HalfOpen() },
		"after a cut":        func(b *bed) { b.f.Cut() },
		"closed by the peer": func(b *bed) { b.peer.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, both(wiretest.Direction{Delay: time.Second}), func(b *bed) {
				b.send(b.f, data(1000), 1000).now()
				time.AfterFunc(time.Second/2, func() { do(b) }) // while Close waits
				require.NoError(b, b.f.Close())
				require.LessOrEqual(b, time.Since(b.begin), time.Second, "the farewell is for a peer that may read")
			})
			inBubble(t, both(wiretest.Direction{Delay: time.Second}), func(b *bed) {
				b.send(b.f, data(1000), 1000).now()
				do(b)
				require.NoError(b, b.f.Close())
				require.LessOrEqual(b, time.Since(b.begin), time.Second, "the farewell is for a peer that may read")
			})
		})
	}
}

// A remaining goroutine would make synctest fail each of these.
func TestClose_EndsGoroutines(t *testing.T) {
	slow := wiretest.Direction{Delay: time.Second}
	for name, do := range map[string]func(b *bed){
		"at once":        func(*bed) {},
		"in a stall":     func(b *bed) { b.f.Stall() },
		"half-open":      func(b *bed) { b.f.HalfOpen() },
		"after a cut":    func(b *bed) { b.f.Cut() },
		"after the peer": func(b *bed) { b.peer.Close() },
		// The time is that of the synctest bubble, in which all cases run.
		"though the peer does not read":          func(b *bed) { fakeclock.Sleep(2 * time.Second) },
		"while more is written than fits":        func(b *bed) { b.send(b.f, data(3<<20), 3<<20); synctest.Wait() },
		"while the peer writes without a reader": func(b *bed) { b.send(b.peer, data(100_000), 1000); synctest.Wait() },
	} {
		for _, d := range []wiretest.Direction{{}, slow, {Bandwidth: 1000}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, peer := net.Pipe()
					b := &bed{t, wiretest.FaultyConn(c, both(d)), peer, time.Now()}
					b.send(b.f, data(1000), 1000)
					synctest.Wait()
					do(b)
					require.NoError(t, b.f.Close())
					fakeclock.Sleep(5 * time.Second)
					synctest.Wait()
					_, err := b.peer.Write([]byte{1})
					require.Error(t, err, "the connection below is closed")
				})
			})
		}
	}
}

// A deadline ends any wait, and recalls unsent bytes.
func TestDeadline_RecallsUnsent(t *testing.T) {
	for name, prepare := range map[string]func(f *wiretest.Conn){
		"for the peer": func(*wiretest.Conn) {}, "in a stall": (*wiretest.Conn).Stall,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, wiretest.Faults{Out: wiretest.Direction{StallAfter: 50}}, func(b *bed) {
				prepare(b.f)
				require.NoError(b, b.f.SetDeadline(time.Now().Add(time.Second)))
				got, sent := b.collect(b.f), b.send(b.f, data(100), 100)
				fakeclock.Sleep(time.Second)
				require.ErrorIs(b, got.now().err, os.ErrDeadlineExceeded)
				require.ErrorIs(b, sent.now().err, os.ErrDeadlineExceeded)

				require.NoError(b, b.f.SetDeadline(time.Time{}))
				b.send(b.f, data(100)[sent.now().n:], 100)
				b.f.Heal()
				there := b.collect(b.peer)
				synctest.Wait()
				b.f.Heal() // what StallAfter began
				synctest.Wait()
				require.Equal(b, data(100), there.now().data, "nothing came twice, nothing was lost")
			})
		})
	}
}

// A deadline recalls each of several writes.
func TestDeadline_SeveralWrites(t *testing.T) {
	inBubble(t, wiretest.Faults{}, func(b *bed) {
		got := b.collect(b.peer)
		b.f.Stall()
		require.NoError(b, b.f.SetWriteDeadline(time.Now().Add(time.Second)))
		for range 3 {
			b.send(b.f, data(100), 100)
		}
		fakeclock.Sleep(2 * time.Second)
		b.f.Heal()
		require.Empty(b, got.now().data)
		require.NoError(b, b.f.SetWriteDeadline(time.Time{}))
		b.send(b.f, []byte("after"), 5)
		require.Equal(b, "after", string(got.now().data))
	})
}

// Concurrent Writes stay whole.
func TestWrite_Concurrent(t *testing.T) {
	inBubble(t, wiretest.Faults{Out: wiretest.Direction{Bandwidth: 1 << 20}}, func(b *bed) {
		got := b.collect(b.peer)
		const writers, size = 20, 5000
		for i := range writers {
			b.send(b.f, bytes.Repeat([]byte{byte(i)}, size), size)
		}
		fakeclock.Sleep(time.Second)
		require.Len(b, got.now().data, writers*size)
		seen := map[byte]bool{}
		for part := range slices.Chunk(got.now().data, size) {
			require.Equal(b, bytes.Repeat(part[:1], size), part)
			seen[part[0]] = true
		}
		require.Len(b, seen, writers)
	})
}

// Addresses are those of the connection below.
func TestFaultyConn_Addresses(t *testing.T) {
	p, q := tcpPair(t)
	f := wiretest.FaultyConn(p, wiretest.Faults{})
	defer f.Close()
	require.Equal(t, q.RemoteAddr().String(), f.LocalAddr().String())
	require.Equal(t, q.LocalAddr().String(), f.RemoteAddr().String())
	_, in := io.Pipe()
	out, _ := io.Pipe()
	g := wiretest.FaultyConn(duplex{out, in}, wiretest.Faults{})
	defer g.Close()
	require.NotEmpty(t, g.LocalAddr().Network()+g.RemoteAddr().String())
}

// A cut of TCP is a reset for the other end.
func TestCut_TCPReset(t *testing.T) {
	p, q := tcpPair(t)
	f := wiretest.FaultyConn(p, wiretest.Faults{})
	f.Cut()
	_, err := q.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.NoError(t, f.Close())
}
