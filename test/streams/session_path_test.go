package streams

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/stream"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

const (
	sinkFn   = 81 // takes a stream
	sleepyFn = 82 // takes a stream, when the test permits it
	mbit     = 1_000_000 / 8
)

// far is a session over a link, with the bytes received on its streams.
type far struct {
	t       *testing.T
	s       *asterisque.Session
	link    *wiretest.Link
	rate    int
	trip    time.Duration
	arrived chan int
}

// overLink returns a session with its peer behind a link of the given rate in bytes a second in
// either direction, and that round trip.
func overLink(t *testing.T, rate int, trip time.Duration, changes ...wiretest.Change) *far {
	lane := wiretest.Lane{Rate: rate, Delay: trip / 2, Changes: changes}
	f := &far{t: t, link: wiretest.NewLink(wiretest.LinkConfig{Out: lane, In: lane}), rate: rate, trip: trip, arrived: make(chan int, 1<<20)}
	svc := asterisque.NewService()
	svc.Handle(sinkFn, "sink", f.sink)
	svc.Handle(sleepyFn, "sleepy", testkit.WaitForContext)
	testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	here := testkit.NewNode(t, asterisque.WithCodecs(codec.CBOR))
	there := testkit.NewNode(t, asterisque.WithService(svc))
	a, b := f.link.Pipe()
	f.s, _ = asterisquetest.ConnectOver(t, here, there, wire.FromConn(a), wire.FromConn(b))
	return f
}

func (f *far) sink(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
	r := stream.NewReader(p)
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		f.arrived <- n
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// flood sends all it can over the given number of streams, until the session ends.
func (f *far) flood(streams int, p priority.Priority) {
	for range streams {
		pp, err := f.s.Open(testkit.Background, sinkFn, nil, asterisque.WithPriority(p))
		require.NoError(f.t, err)
		go func() { // ends with the session
			w := stream.NewWriter(pp)
			buf := make([]byte, 64<<10)
			for err := error(nil); err == nil; {
				_, err = w.Write(buf)
			}
		}()
	}
}

// throughput waits for d, and returns the part of the link's rate that the streams have reached.
func (f *far) throughput(d time.Duration) float64 {
	f.count()
	fakeclock.Sleep(d)
	return float64(f.count()) / d.Seconds() / float64(f.rate)
}

// count returns the number of bytes that have arrived since its last call.
func (f *far) count() (sum int) {
	for {
		select {
		case n := <-f.arrived:
			sum += n
		default:
			return sum
		}
	}
}

// worst makes a call now and then for d, with a high priority, and returns the duration of the
// slowest call.
func (f *far) worst(d time.Duration) (worst time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		fakeclock.Sleep(7 * time.Millisecond)
		begin := time.Now()
		_, err := testkit.Echo.Call(testkit.Background, f.s, "urgent", asterisque.WithPriority(100))
		require.NoError(f.t, err)
		worst = max(worst, time.Since(begin))
	}
	return worst
}

func (f *far) close() {
	f.s.Close()
	synctest.Wait()
}

// A stream uses the full rate of its path.
func TestPath_StreamFillsIt(t *testing.T) {
	testkit.SkipRace(t)
	for name, c := range map[string]struct {
		rate    int
		trip    time.Duration
		streams int
		within  time.Duration // by then it does
	}{
		"10 Mbit/s, 50 ms":               {10 * mbit, 50 * time.Millisecond, 1, 2 * time.Second},
		"100 Mbit/s, 10 ms":              {100 * mbit, 10 * time.Millisecond, 1, time.Second},
		"100 Mbit/s, 50 ms":              {100 * mbit, 50 * time.Millisecond, 1, 2 * time.Second},
		"100 Mbit/s, 200 ms":             {100 * mbit, 200 * time.Millisecond, 1, 8 * time.Second},
		"100 Mbit/s, 50 ms, 100 streams": {100 * mbit, 50 * time.Millisecond, 100, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := overLink(t, c.rate, c.trip)
				defer f.close()
				f.flood(c.streams, 0)
				fakeclock.Sleep(c.within)
				require.Greater(t, f.throughput(3*time.Second), 0.9)
				p := f.s.Path()
				require.InEpsilon(t, c.rate, p.Rate, 0.1)
				require.InEpsilon(t, c.trip, p.RoundTrip, 0.1)
				require.Contains(t, []asterisque.PathBound{asterisque.BoundByPath, asterisque.BoundByWindow}, p.Bound)
			})
		})
	}
}

// The bytes in flight stay within the capacity of the path.
func TestPath_InFlightBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := overLink(t, 10*mbit, 50*time.Millisecond)
		defer f.close()
		f.flood(3, 0)
		fakeclock.Sleep(3 * time.Second)
		holds := 10 * mbit / 20
		for range 1000 {
			fakeclock.Sleep(3 * time.Millisecond)
			p := f.s.Path()
			require.LessOrEqual(t, p.InFlight, max(p.Limit, holds*5/4)+holds/4)
			out, _ := f.link.Stats()
			require.Less(t, out.Queued, holds/2, "queues form before the link, and not in it")
		}
	})
}

// An urgent call beside a bulk transfer takes at most two round trips.
func TestPath_UrgentBesideBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := overLink(t, 10*mbit, 50*time.Millisecond)
		defer f.close()
		f.flood(1, -10)
		fakeclock.Sleep(2 * time.Second)
		require.LessOrEqual(t, f.worst(10*time.Second), 100*time.Millisecond)
		require.Greater(t, f.throughput(5*time.Second), 0.85)
	})
}

// An urgent call beside a large message takes at most two round trips.
func TestPath_UrgentBesideLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := overLink(t, 10*mbit, 50*time.Millisecond)
		defer f.close()
		done := make(chan error)
		go func() { // ends with the call
			_, err := f.s.Call(testkit.Background, 1, make([]byte, 4_000_000), asterisque.WithPriority(-10))
			done <- err
		}()
		fakeclock.Sleep(time.Second)
		require.LessOrEqual(t, f.worst(2*time.Second), 100*time.Millisecond)
		require.ErrorIs(t, <-done, asterisque.ErrNoFunction)
	})
}

// A change of the path is followed.
func TestPath_Changes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []wiretest.Change
		for i := 1; i < 8; i++ {
			rate := 10 * mbit
			if i%2 == 1 {
				rate /= 2
			}
			changes = append(changes, wiretest.Change{At: time.Duration(i) * 5 * time.Second, Rate: rate, Delay: 25 * time.Millisecond})
		}
		f := overLink(t, 10*mbit, 50*time.Millisecond, changes...)
		defer f.close()
		f.flood(1, -10)
		fakeclock.Sleep(5*time.Second + time.Millisecond)
		for range 6 {
			require.LessOrEqual(t, f.worst(time.Second), 250*time.Millisecond, "at a change")
			require.LessOrEqual(t, f.worst(3900*time.Millisecond), 100*time.Millisecond, "a second later")
			fakeclock.Sleep(10 * time.Millisecond)
		}
	})
}

// A path that is not read is bounded by the peer.
func TestPath_BoundByPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := overLink(t, 10*mbit, 50*time.Millisecond)
		defer f.close()
		p, err := f.s.Open(testkit.Background, sleepyFn, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(testkit.Background, 10*time.Second)
		defer cancel()
		go stream.NewWriter(p).Write(make([]byte, 1<<20)) // ends with the session
		fakeclock.Sleep(5 * time.Second)
		require.Equal(t, asterisque.BoundByWindow, f.s.Path().Bound)
		<-ctx.Done()
	})
}

// A session with little traffic sends no marks.
func TestPath_NoMarksIfQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := overLink(t, 10*mbit, 50*time.Millisecond)
		defer f.close()
		out, _ := f.link.Stats()
		before := out.Passed
		for range 100 {
			_, err := testkit.Echo.Call(testkit.Background, f.s, string(make([]byte, 1000)))
			require.NoError(t, err)
			fakeclock.Sleep(100 * time.Millisecond)
		}
		out, _ = f.link.Stats()
		require.Less(t, out.Passed-before, int64(100*1040))
		require.Zero(t, f.s.Path().Rate)
		require.Equal(t, asterisque.BoundByApplication, f.s.Path().Bound)
	})
}
