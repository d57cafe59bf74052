package wiretest_test

import (
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestFaultyConn_Suite(t *testing.T) {
	slow := wiretest.Direction{Delay: time.Millisecond, Jitter: time.Millisecond, Bandwidth: 1 << 30}
	for name, faults := range map[string]wiretest.Faults{"without faults": {}, "slow": {Out: slow, In: slow}} {
		t.Run(name, func(t *testing.T) {
			skipRace(t)
			wiretest.RunInBubbles(t, func(*testing.T) (a, b wire.Wire) {
				p, q := net.Pipe()
				return wire.FromConn(wiretest.FaultyConn(p, faults)), wire.FromConn(wiretest.FaultyConn(q, faults))
			})
		})
	}
	t.Run("over what is no net.Conn", func(t *testing.T) {
		skipRace(t)
		wiretest.RunInBubbles(t, func(*testing.T) (a, b wire.Wire) {
			there, in := io.Pipe()
			back, out := io.Pipe()
			return wire.FromConn(wiretest.FaultyConn(duplex{back, in}, wiretest.Faults{})), wire.FromConn(wiretest.FaultyConn(duplex{there, out}, wiretest.Faults{}))
		})
	})
	t.Run("over TCP", func(t *testing.T) {
		wiretest.Run(t, func(t *testing.T) (a, b wire.Wire) {
			p, q := tcpPair(t)
			return wire.FromConn(wiretest.FaultyConn(p, wiretest.Faults{})), wire.FromConn(q)
		})
	})
}

// skipRace skips tests that take ten times as long with the race detector, if other tests cover
// their goroutines.
func skipRace(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("other tests cover it with the race detector")
	}
}

// Without faults everything arrives at once.
func TestFaults_None(t *testing.T) {
	ways(t, wiretest.Direction{}, func(b *bed, w, r net.Conn) {
		sent, got := b.send(w, data(100_000), 10_000), b.collect(r)
		require.True(b, sent.now().done)
		require.Equal(b, data(100_000), got.now().data)
		require.Zero(b, got.now().took)
	})
}

// The delay is the same for every byte, and costs no bandwidth.
func TestDelay_EveryByte(t *testing.T) {
	ways(t, wiretest.Direction{Delay: 50 * time.Millisecond}, func(b *bed, w, r net.Conn) {
		sent, got := b.send(w, data(500_000), 1000), b.collect(r)
		fakeclock.Sleep(50*time.Millisecond - time.Nanosecond)
		require.True(b, sent.now().done, "what is under way does not hold the writer up")
		require.Empty(b, got.now().data)
		fakeclock.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(b, data(500_000), got.now().data)
	})
}

// With a delay, writing blocks at a mebibyte in flight.
func TestDelay_OneMebibyte(t *testing.T) {
	ways(t, wiretest.Direction{Delay: time.Second}, func(b *bed, w, r net.Conn) {
		sent, got := b.send(w, data(3<<20), 4096), b.collect(r)
		require.False(b, sent.now().done)
		require.InDelta(b, 1<<20, sent.now().n, 64<<10)
		fakeclock.Sleep(4 * time.Second)
		require.True(b, sent.now().done)
		require.Equal(b, data(3<<20), got.now().data)
	})
}

// Jitter keeps the order, and its bounds.
func TestJitter_OrderAndBounds(t *testing.T) {
	d := wiretest.Direction{Delay: 10 * time.Millisecond, Jitter: 20 * time.Millisecond}
	ways(t, d, func(b *bed, w, r net.Conn) {
		got := b.collect(r)
		var all []byte
		latencies := map[time.Duration]bool{}
		for i := range 20 {
			part := data(1 << 10)
			part[0] = byte(i)
			all = append(all, part...)
			b.send(w, part, len(part))
			before := time.Now()
			for len(got.now().data) < len(all) {
				fakeclock.Sleep(time.Millisecond)
			}
			took := got.now().took - before.Sub(b.begin)
			require.GreaterOrEqual(b, took, d.Delay)
			require.Less(b, took, d.Delay+d.Jitter)
			latencies[took] = true
		}
		require.Equal(b, all, got.now().data)
		require.Greater(b, len(latencies), 15, "it jitters")
	})
}

// The same seed means the same faults, at any division of the bytes.
func TestSeed_AnyWrites(t *testing.T) {
	d := wiretest.Direction{Delay: time.Millisecond, Jitter: time.Second, CorruptAt: 5000, CutAfter: 30_000}
	type arrival struct {
		bytes int
		took  time.Duration
	}
	replay := func(faults wiretest.Faults, size int) (arrivals []arrival, all []byte) {
		inBubble(t, faults, func(b *bed) {
			b.send(b.f, data(40_000), size)
			p := make([]byte, 1<<16)
			for {
				n, err := b.peer.Read(p)
				if all = append(all, p[:n]...); err != nil {
					return
				}
				if last := len(arrivals) - 1; last >= 0 && arrivals[last].took == time.Since(b.begin) {
					arrivals[last].bytes = len(all)
				} else {
					arrivals = append(arrivals, arrival{len(all), time.Since(b.begin)})
				}
			}
		})
		return arrivals, all
	}
	arrivals, all := replay(wiretest.Faults{Seed: 1, Out: d}, 40_000)
	require.Greater(t, len(arrivals), 3)
	for _, size := range []int{40_000, 1000, 77} {
		again, same := replay(wiretest.Faults{Seed: 1, Out: d}, size)
		require.Equal(t, arrivals, again)
		require.Equal(t, all, same)
	}
	other, _ := replay(wiretest.Faults{Seed: 2, Out: d}, 40_000)
	require.NotEqual(t, arrivals, other, "another seed is another story")
}

func TestBandwidth(t *testing.T) {
	ways(t, wiretest.Direction{Bandwidth: 100_000}, func(b *bed, w, r net.Conn) {
		sent, got := b.send(w, data(250_000), 7000), b.collect(r)
		fakeclock.Sleep(time.Second)
		synctest.Wait()
		require.InDelta(b, 100_000, len(got.now().data), 100)
		require.InDelta(b, 100_000, sent.now().n, 40_000, "the writer is held up")
		fakeclock.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Equal(b, data(250_000), got.now().data)
	})
}

// Unused bandwidth is lost.
func TestBandwidth_Unused(t *testing.T) {
	ways(t, wiretest.Direction{Bandwidth: 100_000, Delay: time.Millisecond}, func(b *bed, w, r net.Conn) {
		got := b.collect(r)
		fakeclock.Sleep(time.Minute)
		b.send(w, data(100_000), 1000)
		fakeclock.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.InDelta(b, 10_000, len(got.now().data), 1000)
		b.f.Stall()
		fakeclock.Sleep(time.Minute)
		b.f.Heal()
		fakeclock.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.InDelta(b, 20_000, len(got.now().data), 1000, "nothing was made up for after the stall")
		b.f.Close()
	})
}

// A corruption flips one bit of one byte.
func TestCorruptAt_OneBit(t *testing.T) {
	for _, at := range []int64{1, 2, 4096, 10_000} {
		ways(t, wiretest.Direction{CorruptAt: at}, func(b *bed, w, r net.Conn) {
			got := b.collect(r)
			b.send(w, data(10_000), 3000)
			synctest.Wait()
			want := data(10_000)
			require.Len(b, got.now().data, len(want))
			flipped := want[at-1] ^ got.now().data[at-1]
			require.NotZero(b, flipped)
			require.Zero(b, flipped&(flipped-1), "one bit")
			want[at-1] = got.now().data[at-1]
			require.Equal(b, want, got.now().data, "and no other")
		})
	}
}

// Bytes before the cut arrive.
func TestCutAfter_BytesArrive(t *testing.T) {
	for _, after := range []int64{1, 4096, 9999, 10_000} {
		ways(t, wiretest.Direction{CutAfter: after}, func(b *bed, w, r net.Conn) {
			got, sent := b.collect(r), b.send(w, data(20_000), 10_000)
			other := b.collect(w)
			synctest.Wait()
			require.Equal(b, data(20_000)[:after], got.now().data)
			require.True(b, other.now().done, "the other direction has ended as well")
			_, err := b.f.Write([]byte{1})
			require.ErrorIs(b, err, syscall.ECONNRESET)
			_, err = b.f.Read(make([]byte, 1))
			require.ErrorIs(b, err, syscall.ECONNRESET)
			if w == net.Conn(b.f) {
				require.EqualValues(b, after, sent.now().n)
				require.ErrorIs(b, sent.now().err, syscall.ECONNRESET)
				require.Equal(b, io.EOF, got.now().err)
			}
		})
	}
}

// A cut does not wait for further traffic.
func TestCutAfter_NoTraffic(t *testing.T) {
	ways(t, wiretest.Direction{CutAfter: 100}, func(b *bed, w, r net.Conn) {
		got, sent := b.collect(r), b.send(w, data(100), 100)
		require.NoError(b, sent.now().err)
		require.Equal(b, data(100), got.now().data)
		require.True(b, got.now().done)
	})
}

// A truncation is a graceful end.
func TestTruncateAfter(t *testing.T) {
	ways(t, wiretest.Direction{TruncateAfter: 5000}, func(b *bed, w, r net.Conn) {
		got := b.collect(r)
		b.send(w, data(20_000), 10_000)
		synctest.Wait()
		require.Equal(b, data(20_000)[:5000], got.now().data)
		require.Equal(b, io.EOF, got.now().err)
		_, err := b.f.Read(make([]byte, 1))
		require.Equal(b, io.EOF, err)
		_, err = b.f.Write([]byte{1})
		require.ErrorIs(b, err, syscall.EPIPE)
	})
}

// A truncated Wire ends inside a frame.
func TestTruncateAfter_Wire(t *testing.T) {
	frames := [][]byte{[]byte("first"), []byte("second")}
	ways(t, wiretest.Direction{TruncateAfter: 4 + 5 + 4 + 3}, func(b *bed, w, r net.Conn) {
		go wire.FromConn(w).WriteFrames(frames)
		in := wire.FromConn(r)
		frame, err := in.ReadFrame(100)
		require.NoError(b, err)
		require.Equal(b, frames[0], frame)
		_, err = in.ReadFrame(100)
		require.ErrorIs(b, err, io.ErrUnexpectedEOF)
	})
}

// A stall loses nothing.
func TestStall_LosesNothing(t *testing.T) {
	ways(t, wiretest.Direction{StallAfter: 5000}, func(b *bed, w, r net.Conn) {
		got, sent := b.collect(r), b.send(w, data(60_000), 50_000)
		fakeclock.Sleep(time.Hour)
		require.Len(b, got.now().data, 5000)
		require.False(b, sent.now().done)
		b.f.Heal()
		synctest.Wait()
		require.Equal(b, data(60_000), got.now().data)
		require.True(b, sent.now().done)

		b.f.Stall()
		sent = b.send(w, data(60_000), 60_000)
		fakeclock.Sleep(time.Hour)
		require.Len(b, got.now().data, 60_000)
		require.False(b, sent.now().done)
		b.f.Heal()
		synctest.Wait()
		require.Equal(b, append(data(60_000), data(60_000)...), got.now().data)
	})
}

// A stall also holds the end of the connection.
func TestStall_HoldsTheEnd(t *testing.T) {
	inBubble(t, wiretest.Faults{}, func(b *bed) {
		got := b.collect(b.f)
		b.f.Stall()
		b.peer.Close()
		fakeclock.Sleep(time.Hour)
		require.False(b, got.now().done)
		b.f.Heal()
		synctest.Wait()
		require.Equal(b, io.EOF, got.now().err)
	})
}

// All later bytes are silently lost.
func TestVanishAfter(t *testing.T) {
	ways(t, wiretest.Direction{VanishAfter: 5000}, func(b *bed, w, r net.Conn) {
		got, sent := b.collect(r), b.send(w, data(60_000), 10_000)
		synctest.Wait()
		require.Equal(b, data(60_000)[:5000], got.now().data)
		require.False(b, got.now().done)
		require.True(b, sent.now().done)
		require.NoError(b, sent.now().err)
		back := b.send(r, data(100), 100)
		require.Equal(b, data(100), read(b, w, 100), "the other direction continues")
		require.NoError(b, back.now().err)
	})
}

// Both directions may vanish at a position.
func TestVanishAfter_BothWays(t *testing.T) {
	inBubble(t, both(wiretest.Direction{VanishAfter: 100}), func(b *bed) {
		here, there := b.collect(b.f), b.collect(b.peer)
		mine, theirs := b.send(b.f, data(60_000), 1000), b.send(b.peer, data(60_000), 1000)
		fakeclock.Sleep(time.Hour)
		require.Equal(b, data(100), here.now().data)
		require.Equal(b, data(100), there.now().data)
		require.True(b, mine.now().done && theirs.now().done)
		require.False(b, here.now().done || there.now().done)
	})
}

// Half-open means that writing succeeds and reading blocks.
func TestHalfOpen(t *testing.T) {
	for name, d := range map[string]wiretest.Direction{"": {}, "with a delay": {Delay: time.Second}, "with a bandwidth": {Bandwidth: 1000}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, both(d), func(b *bed) {
				here, there := b.collect(b.f), b.collect(b.peer)
				b.send(b.f, data(100), 100)
				b.send(b.peer, data(100), 100)
				fakeclock.Sleep(2 * time.Second)
				underWay := b.send(b.f, data(2<<20), 2<<20) // more than a line holds
				fakeclock.Sleep(time.Millisecond)
				b.f.HalfOpen()
				require.True(b, underWay.now().done)
				require.NoError(b, underWay.now().err)
				arrived := len(there.now().data)
				mine, theirs := b.send(b.f, data(2<<20), 4096), b.send(b.peer, data(2<<20), 4096)
				fakeclock.Sleep(time.Hour)
				require.NoError(b, mine.now().err)
				require.NoError(b, theirs.now().err)
				require.True(b, mine.now().done && theirs.now().done)
				require.Len(b, there.now().data, arrived)
				require.Len(b, here.now().data, 100)
				require.False(b, here.now().done || there.now().done, "nothing is closed")

				b.f.Heal()
				b.peer.Close()
				fakeclock.Sleep(time.Hour)
				require.False(b, here.now().done, "the end of the other side has vanished, too")
				_, err := b.f.Write(data(100))
				require.NoError(b, err)
				b.f.Close()
				require.ErrorIs(b, here.now().err, net.ErrClosed)
				_, err = b.f.Write(data(100))
				require.ErrorIs(b, err, net.ErrClosed)
			})
		})
	}
}

// A half-open connection hides a failed write.
func TestHalfOpen_FailedWrite(t *testing.T) {
	inBubble(t, wiretest.Faults{}, func(b *bed) {
		sent := b.send(b.f, data(100), 100)
		require.False(b, sent.now().done, "the peer does not read")
		b.f.HalfOpen()
		b.peer.Close()
		require.True(b, sent.now().done)
		require.NoError(b, sent.now().err)
		require.NoError(b, b.send(b.f, data(100), 100).now().err)
	})
}
