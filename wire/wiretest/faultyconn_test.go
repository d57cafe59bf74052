package wiretest_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestAFaultyConnPassesTheSuite(t *testing.T) {
	slow := wiretest.Direction{Delay: time.Millisecond, Jitter: time.Millisecond, Bandwidth: 1 << 30}
	for name, faults := range map[string]wiretest.Faults{"without faults": {}, "slow": {Out: slow, In: slow}} {
		t.Run(name, func(t *testing.T) {
			wiretest.Run(t, func(*testing.T) (a, b wire.Wire) {
				p, q := net.Pipe()
				return wire.FromConn(wiretest.FaultyConn(p, faults)), wire.FromConn(wiretest.FaultyConn(q, faults))
			})
		})
	}
	t.Run("over what is no net.Conn", func(t *testing.T) {
		wiretest.Run(t, func(*testing.T) (a, b wire.Wire) {
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

// duplex is a stream of bytes and no more.
type duplex struct {
	*io.PipeReader
	*io.PipeWriter
}

func (d duplex) Close() error { return errors.Join(d.PipeReader.Close(), d.PipeWriter.Close()) }

func (d duplex) CloseWithError(error) error { panic("not used") }

// bed is where one test works on a faulty connection: f is its faulty end, peer the other one.
type bed struct {
	*testing.T
	f     *wiretest.Conn
	peer  net.Conn
	begin time.Time
}

// inBubble runs test under synctest over a connection that holds nothing: a write waits for its
// read.
func inBubble(t *testing.T, faults wiretest.Faults, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, peer := net.Pipe()
		b := &bed{t, wiretest.FaultyConn(c, faults), peer, time.Now()}
		defer b.peer.Close()
		defer b.f.Close()
		test(b)
	})
}

// both is for faults in both directions.
func both(d wiretest.Direction) wiretest.Faults { return wiretest.Faults{Seed: 1, Out: d, In: d} }

// transfer is writing, or reading to the end, on a goroutine that ends with the connection.
type transfer struct {
	mu sync.Mutex
	so outcome // guarded by mu
}

// outcome is what has come of a transfer.
type outcome struct {
	data []byte // what was read
	n    int    // how many bytes were written
	err  error
	took time.Duration // since the bed was made
	done bool
}

// note changes the outcome.
func (b *bed) note(t *transfer, change func(o *outcome)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.so)
	t.so.took = time.Since(b.begin)
}

// now returns the outcome when nothing more happens without time passing.
func (t *transfer) now() outcome {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.so
}

// send starts to write data to w in writes of this size.
func (b *bed) send(w io.Writer, data []byte, size int) *transfer {
	t := new(transfer)
	go func() {
		for part := range slices.Chunk(data, size) {
			n, err := w.Write(part)
			b.note(t, func(o *outcome) { o.n, o.err = o.n+n, err })
			if err != nil {
				break
			}
		}
		b.note(t, func(o *outcome) { o.done = true })
	}()
	return t
}

// collect starts to read from c to the end.
func (b *bed) collect(c io.Reader) *transfer {
	t := new(transfer)
	go func() {
		p := make([]byte, 4096)
		for {
			n, err := c.Read(p)
			b.note(t, func(o *outcome) { o.data, o.err, o.done = append(o.data, p[:n]...), err, err != nil })
			if err != nil {
				return
			}
		}
	}()
	return t
}

// data returns n bytes.
func data(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// ways runs test for each direction: w and r are the ends that write and read, and faulty is the
// direction of Faults between them.
func ways(t *testing.T, d wiretest.Direction, test func(b *bed, w, r net.Conn)) {
	t.Run("out", func(t *testing.T) {
		inBubble(t, wiretest.Faults{Seed: 1, Out: d}, func(b *bed) { test(b, b.f, b.peer) })
	})
	t.Run("in", func(t *testing.T) {
		inBubble(t, wiretest.Faults{Seed: 1, In: d}, func(b *bed) { test(b, b.peer, b.f) })
	})
}

func TestWithoutFaultsEverythingArrivesAtOnce(t *testing.T) {
	ways(t, wiretest.Direction{}, func(b *bed, w, r net.Conn) {
		sent, got := b.send(w, data(100_000), 10_000), b.collect(r)
		require.True(b, sent.now().done)
		require.Equal(b, data(100_000), got.now().data)
		require.Zero(b, got.now().took)
	})
}

func TestDelayIsTheSameForEveryByteAndCostsNoBandwidth(t *testing.T) {
	ways(t, wiretest.Direction{Delay: 50 * time.Millisecond}, func(b *bed, w, r net.Conn) {
		sent, got := b.send(w, data(500_000), 1000), b.collect(r)
		time.Sleep(50*time.Millisecond - time.Nanosecond)
		require.True(b, sent.now().done, "what is under way does not hold the writer up")
		require.Empty(b, got.now().data)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(b, data(500_000), got.now().data)
	})
}

func TestWithADelayWritingWaitsWhenAMebibyteIsUnderWay(t *testing.T) {
	ways(t, wiretest.Direction{Delay: time.Second}, func(b *bed, w, r net.Conn) {
		sent, got := b.send(w, data(3<<20), 4096), b.collect(r)
		require.False(b, sent.now().done)
		require.InDelta(b, 1<<20, sent.now().n, 64<<10)
		time.Sleep(4 * time.Second)
		require.True(b, sent.now().done)
		require.Equal(b, data(3<<20), got.now().data)
	})
}

func TestJitterKeepsTheOrderAndItsBounds(t *testing.T) {
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
				time.Sleep(time.Millisecond)
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

func TestTheSameSeedMeansTheSameFaultsHoweverTheBytesAreDivided(t *testing.T) {
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

func TestBandwidthIsHowManyBytesPassInASecond(t *testing.T) {
	ways(t, wiretest.Direction{Bandwidth: 100_000}, func(b *bed, w, r net.Conn) {
		sent, got := b.send(w, data(250_000), 7000), b.collect(r)
		time.Sleep(time.Second)
		synctest.Wait()
		require.InDelta(b, 100_000, len(got.now().data), 100)
		require.InDelta(b, 100_000, sent.now().n, 40_000, "the writer is held up")
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Equal(b, data(250_000), got.now().data)
	})
}

func TestBandwidthThatNobodyUsedIsGone(t *testing.T) {
	ways(t, wiretest.Direction{Bandwidth: 100_000, Delay: time.Millisecond}, func(b *bed, w, r net.Conn) {
		got := b.collect(r)
		time.Sleep(time.Minute)
		b.send(w, data(100_000), 1000)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.InDelta(b, 10_000, len(got.now().data), 1000)
		b.f.Stall()
		time.Sleep(time.Minute)
		b.f.Heal()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.InDelta(b, 20_000, len(got.now().data), 1000, "nothing was made up for after the stall")
		b.f.Close()
	})
}

func TestCorruptionFlipsOneBitOfOneByte(t *testing.T) {
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

func TestACutAfterSomeBytesLetsThoseArrive(t *testing.T) {
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

func TestACutDoesNotWaitForMoreTraffic(t *testing.T) {
	ways(t, wiretest.Direction{CutAfter: 100}, func(b *bed, w, r net.Conn) {
		got, sent := b.collect(r), b.send(w, data(100), 100)
		require.NoError(b, sent.now().err)
		require.Equal(b, data(100), got.now().data)
		require.True(b, got.now().done)
	})
}

func TestTruncationIsAnEndInGoodOrder(t *testing.T) {
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

func TestAWireThatIsTruncatedEndsInsideAFrame(t *testing.T) {
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

func TestAStallHoldsEverythingAndLosesNothing(t *testing.T) {
	ways(t, wiretest.Direction{StallAfter: 5000}, func(b *bed, w, r net.Conn) {
		got, sent := b.collect(r), b.send(w, data(60_000), 50_000)
		time.Sleep(time.Hour)
		require.Len(b, got.now().data, 5000)
		require.False(b, sent.now().done)
		b.f.Heal()
		synctest.Wait()
		require.Equal(b, data(60_000), got.now().data)
		require.True(b, sent.now().done)

		b.f.Stall()
		sent = b.send(w, data(60_000), 60_000)
		time.Sleep(time.Hour)
		require.Len(b, got.now().data, 60_000)
		require.False(b, sent.now().done)
		b.f.Heal()
		synctest.Wait()
		require.Equal(b, append(data(60_000), data(60_000)...), got.now().data)
	})
}

func TestAStallHoldsTheEndOfTheConnectionToo(t *testing.T) {
	inBubble(t, wiretest.Faults{}, func(b *bed) {
		got := b.collect(b.f)
		b.f.Stall()
		b.peer.Close()
		time.Sleep(time.Hour)
		require.False(b, got.now().done)
		b.f.Heal()
		synctest.Wait()
		require.Equal(b, io.EOF, got.now().err)
	})
}

func TestVanishingLosesAllThatFollowsWithoutAWord(t *testing.T) {
	ways(t, wiretest.Direction{VanishAfter: 5000}, func(b *bed, w, r net.Conn) {
		got, sent := b.collect(r), b.send(w, data(60_000), 10_000)
		synctest.Wait()
		require.Equal(b, data(60_000)[:5000], got.now().data)
		require.False(b, got.now().done)
		require.True(b, sent.now().done)
		require.NoError(b, sent.now().err)
		back := b.send(r, data(100), 100)
		require.Equal(b, data(100), read(b, w, 100), "the other direction goes on")
		require.NoError(b, back.now().err)
	})
}

func TestBothDirectionsMayVanishAtAPlace(t *testing.T) {
	inBubble(t, both(wiretest.Direction{VanishAfter: 100}), func(b *bed) {
		here, there := b.collect(b.f), b.collect(b.peer)
		mine, theirs := b.send(b.f, data(60_000), 1000), b.send(b.peer, data(60_000), 1000)
		time.Sleep(time.Hour)
		require.Equal(b, data(100), here.now().data)
		require.Equal(b, data(100), there.now().data)
		require.True(b, mine.now().done && theirs.now().done)
		require.False(b, here.now().done || there.now().done)
	})
}

// read reads n bytes.
func read(t *bed, r io.Reader, n int) []byte {
	p := make([]byte, n)
	_, err := io.ReadFull(r, p)
	require.NoError(t, err)
	return p
}

func TestHalfOpenMeansThatWritingSucceedsAndReadingWaits(t *testing.T) {
	for name, d := range map[string]wiretest.Direction{"": {}, "with a delay": {Delay: time.Second}, "with a bandwidth": {Bandwidth: 1000}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, both(d), func(b *bed) {
				here, there := b.collect(b.f), b.collect(b.peer)
				b.send(b.f, data(100), 100)
				b.send(b.peer, data(100), 100)
				time.Sleep(2 * time.Second)
				underWay := b.send(b.f, data(2<<20), 2<<20) // more than a line holds
				time.Sleep(time.Millisecond)
				b.f.HalfOpen()
				require.True(b, underWay.now().done)
				require.NoError(b, underWay.now().err)
				arrived := len(there.now().data)
				mine, theirs := b.send(b.f, data(2<<20), 4096), b.send(b.peer, data(2<<20), 4096)
				time.Sleep(time.Hour)
				require.NoError(b, mine.now().err)
				require.NoError(b, theirs.now().err)
				require.True(b, mine.now().done && theirs.now().done)
				require.Len(b, there.now().data, arrived)
				require.Len(b, here.now().data, 100)
				require.False(b, here.now().done || there.now().done, "nothing is closed")

				b.f.Heal()
				b.peer.Close()
				time.Sleep(time.Hour)
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

func TestAHalfOpenConnectionDoesNotTellThatAWriteHasFailed(t *testing.T) {
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

func TestCutLosesWhatIsUnderWay(t *testing.T) {
	inBubble(t, both(wiretest.Direction{Delay: time.Second}), func(b *bed) {
		here, there := b.collect(b.f), b.collect(b.peer)
		b.send(b.f, data(100), 100)
		b.send(b.peer, data(100), 100)
		time.Sleep(time.Second / 2)
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

func TestCutEndsWhatWaits(t *testing.T) {
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

func TestCloseLetsArriveWhatIsUnderWay(t *testing.T) {
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

func TestCloseTakesBackWhatTheConnectionHadNoRoomFor(t *testing.T) {
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

func TestCloseWaitsASecondForAPeerThatDoesNotRead(t *testing.T) {
	inBubble(t, both(wiretest.Direction{Delay: time.Minute}), func(b *bed) {
		require.True(b, b.send(b.f, data(1<<20), 1<<20).now().done)
		require.NoError(b, b.f.Close())
		require.Equal(b, time.Minute+time.Second, time.Since(b.begin))
	})
}

func TestCloseDoesNotWaitForWhatCannotArrive(t *testing.T) {
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

// A goroutine that stays would let synctest fail each of these.
func TestTheGoroutinesEndWithClose(t *testing.T) {
	slow := wiretest.Direction{Delay: time.Second}
	for name, do := range map[string]func(b *bed){
		"at once":        func(*bed) {},
		"in a stall":     func(b *bed) { b.f.Stall() },
		"half-open":      func(b *bed) { b.f.HalfOpen() },
		"after a cut":    func(b *bed) { b.f.Cut() },
		"after the peer": func(b *bed) { b.peer.Close() },
		// In the bubble, as all of these.
		"though the peer does not read":          func(b *bed) { time.Sleep(2 * time.Second) },
		"while more is written than fits":        func(b *bed) { b.send(b.f, data(3<<20), 3<<20); synctest.Wait() },
		"while the peer writes and nobody reads": func(b *bed) { b.send(b.peer, data(100_000), 1000); synctest.Wait() },
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
					time.Sleep(5 * time.Second)
					synctest.Wait()
					_, err := b.peer.Write([]byte{1})
					require.Error(t, err, "the connection below is closed")
				})
			})
		}
	}
}

func TestADeadlineEndsAnyWaitAndTakesBackWhatWasNotSent(t *testing.T) {
	for name, prepare := range map[string]func(f *wiretest.Conn){
		"for the peer": func(*wiretest.Conn) {}, "in a stall": (*wiretest.Conn).Stall,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, wiretest.Faults{Out: wiretest.Direction{StallAfter: 50}}, func(b *bed) {
				prepare(b.f)
				require.NoError(b, b.f.SetDeadline(time.Now().Add(time.Second)))
				got, sent := b.collect(b.f), b.send(b.f, data(100), 100)
				time.Sleep(time.Second)
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

func TestADeadlineTakesBackEachOfSeveralWrites(t *testing.T) {
	inBubble(t, wiretest.Faults{}, func(b *bed) {
		got := b.collect(b.peer)
		b.f.Stall()
		require.NoError(b, b.f.SetWriteDeadline(time.Now().Add(time.Second)))
		for range 3 {
			b.send(b.f, data(100), 100)
		}
		time.Sleep(2 * time.Second)
		b.f.Heal()
		require.Empty(b, got.now().data)
		require.NoError(b, b.f.SetWriteDeadline(time.Time{}))
		b.send(b.f, []byte("after"), 5)
		require.Equal(b, "after", string(got.now().data))
	})
}

func TestConcurrentWritesStayWhole(t *testing.T) {
	inBubble(t, wiretest.Faults{Out: wiretest.Direction{Bandwidth: 1 << 20}}, func(b *bed) {
		got := b.collect(b.peer)
		const writers, size = 20, 5000
		for i := range writers {
			b.send(b.f, bytes.Repeat([]byte{byte(i)}, size), size)
		}
		time.Sleep(time.Second)
		require.Len(b, got.now().data, writers*size)
		seen := map[byte]bool{}
		for part := range slices.Chunk(got.now().data, size) {
			require.Equal(b, bytes.Repeat(part[:1], size), part)
			seen[part[0]] = true
		}
		require.Len(b, seen, writers)
	})
}

func TestAddressesAreThoseOfTheConnectionBelow(t *testing.T) {
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

func TestACutOfTCPIsAResetForTheOtherEnd(t *testing.T) {
	p, q := tcpPair(t)
	f := wiretest.FaultyConn(p, wiretest.Faults{})
	f.Cut()
	_, err := q.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.NoError(t, f.Close())
}

// tcpPair returns both ends of a TCP connection, which close with the test.
func tcpPair(t *testing.T) (p, q net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	q, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Close()
		q.Close()
	})
	return p, q
}
