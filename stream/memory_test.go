//go:build !race

// The race detector needs memory for every object, so this file is excluded under it.

package stream_test

import (
	"context"
	"flag"
	"io"
	"runtime"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
	"github.com/asterisque-go/asterisque/wire"
)

var soak = flag.Bool("soak", false, "copy 1 GiB instead of 256 MiB in the test of memory")

// TestCopy_Memory bounds the growth of the heap, over that of the idle session, while a large
// stream passes: 8 MiB a side. Both sides are in this process, so the bound is for their sum.
func TestCopy_Memory(t *testing.T) {
	const mostOfBoth = 2 * 8 << 20
	size := int64(256 << 20)
	if *soak {
		size = 1 << 30
	}
	sess := sinkOverTCP(t)
	copyZeros(t, sess, 1<<20) // warm up: goroutines exist, and stacks have grown
	runtime.GC()
	idle := heapInUse()

	peak := sampleHeap(t.Context())
	begin := time.Now()
	copyZeros(t, sess, size)
	elapsed := time.Since(begin)
	most := peak()

	t.Logf("%d MiB in %v: %.0f MB/s; the heap grew from %d to at most %d KiB",
		size>>20, elapsed.Round(time.Millisecond), float64(size)/1e6/elapsed.Seconds(), idle>>10, most>>10)
	require.Less(t, int64(most)-int64(idle), int64(mostOfBoth))
}

// sinkOverTCP returns a session with a peer that offers function 1, which reads a stream to its end
// and returns its length. Everything ends with the test.
func sinkOverTCP(t *testing.T) *asterisque.Session {
	svc := asterisque.NewService()
	svc.Handle(1, "sink", func(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		n, err := io.Copy(io.Discard, stream.NewReader(p))
		return strconv.AppendInt(nil, n, 10), err
	})
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
	t.Cleanup(func() { here.Close(); there.Close() })
	ln, err := wire.Listen(background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	go there.Serve(background, ln) // ends with the node
	sess, err := here.Dial(background, ln.URL())
	require.NoError(t, err)
	return sess
}

// copyZeros sends size bytes and waits until they have been read.
func copyZeros(t *testing.T, sess *asterisque.Session, size int64) {
	t.Helper()
	p, err := sess.Open(background, 1, nil)
	require.NoError(t, err)
	w := stream.NewWriter(p)
	n, err := io.Copy(w, io.LimitReader(zeros{}, size))
	require.NoError(t, err)
	require.Equal(t, size, n)
	require.NoError(t, w.Close())
	read, err := p.Result(background)
	require.NoError(t, err)
	require.Equal(t, strconv.FormatInt(size, 10), string(read))
}

// zeros is a file without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// sampleHeap samples the heap each millisecond, on a goroutine that ends with the call of peak.
// peak returns the largest sample.
func sampleHeap(ctx context.Context) (peak func() uint64) {
	ctx, stop := context.WithCancel(ctx)
	most := make(chan uint64)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for highest := heapInUse(); ; highest = max(highest, heapInUse()) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				most <- highest
				return
			}
		}
	}()
	return func() uint64 { stop(); return <-most }
}

// heapInUse returns what runtime.MemStats calls HeapInuse, garbage included, without stopping the
// program for it.
func heapInUse() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}
