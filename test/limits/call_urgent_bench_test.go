package limits

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/priority"
	"github.com/asterisque-go/asterisque/stream"
	"github.com/asterisque-go/asterisque/wire"
)

// BenchmarkUrgent compares the latency of 64-byte calls at high priority, one each millisecond, on
// an idle session and beside a bulk stream at low priority that saturates the session.
func BenchmarkUrgent(b *testing.B) {
	svc := testkit.EchoService()
	svc.Handle(1, "sink", testkit.Discard)
	dialled, _ := testkit.Connect(b, svc)
	for b.Loop() {
		urgent(b, dialled, 1, 3000, time.Millisecond)
	}
}

// urgent reports the latencies of urgent calls without and with bulk streams, and the rate of the
// streams.
func urgent(b *testing.B, s *asterisque.Session, streams, calls int, every time.Duration) {
	text := string(make([]byte, 64))
	call := func() error {
		_, err := testkit.Echo.Call(testkit.Background, s, text, asterisque.WithPriority(priority.Max))
		return err
	}
	paced := func() (p50, p99 time.Duration) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		return latencies(b, calls, call, tick.C)
	}
	_, quiet := paced()
	ctx, cancel := context.WithCancel(testkit.Background)
	var bulk atomic.Int64
	var senders sync.WaitGroup
	begin := time.Now()
	for range streams {
		p, err := s.Open(ctx, 1, nil, asterisque.WithPriority(priority.Min))
		require.NoError(b, err)
		senders.Go(func() {
			n, _ := stream.NewWriter(p).ReadFrom(zeros{})
			bulk.Add(n)
		})
	}
	p50, p99 := paced()
	elapsed := time.Since(begin)
	cancel()
	senders.Wait()
	b.ReportMetric(float64(quiet.Microseconds()), "p99-idle-µs")
	b.ReportMetric(float64(p50.Microseconds()), "p50-beside-µs")
	b.ReportMetric(float64(p99.Microseconds()), "p99-beside-µs")
	b.ReportMetric(float64(bulk.Load())/elapsed.Seconds()/1e6, "bulk-MB/s")
}

// BenchmarkUrgentOverSlowLink is the same beside sixteen bulk streams, over a link of 10 Mbit/s
// behind a socket buffer of 1 MiB. Urgent frames can no longer overtake frames queued there; on
// Linux the wire bounds that queue.
func BenchmarkUrgentOverSlowLink(b *testing.B) {
	svc := testkit.EchoService()
	svc.Handle(1, "sink", testkit.Discard)
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
	b.Cleanup(func() { here.Close(); there.Close() })
	for b.Loop() {
		near, far := slowLink(b, 10e6/8, 1<<20)
		s, _ := asterisquetest.ConnectOver(b, here, there, wire.FromConn(near), wire.FromConn(far))
		urgent(b, s, 16, 40, 50*time.Millisecond)
		s.Close()
	}
}

// slowLink returns two ends of a connection. Bytes from near pass a socket with a send buffer of
// the given size, and then a link of the given rate in bytes a second.
func slowLink(b *testing.B, rate float64, buffer int) (near, far net.Conn) {
	near, in := testkit.TCPPair(b)
	out, far := testkit.TCPPair(b)
	require.NoError(b, near.(*net.TCPConn).SetWriteBuffer(buffer))
	require.NoError(b, in.(*net.TCPConn).SetReadBuffer(32<<10))
	go func() { // ends when near is closed
		defer out.Close()
		buf := make([]byte, 1500)
		for begin, sent := time.Now(), 0; ; {
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			if sent += n; float64(sent) > rate*time.Since(begin).Seconds() {
				// The bytes take that long on a link of this rate.
				due := begin.Add(time.Duration(float64(sent) / rate * 1e9))
				time.Sleep(time.Until(due)) //nolint:forbidigo // the link
			} else {
				begin, sent = time.Now(), 0
			}
			out.Write(buf[:n])
		}
	}()
	go func() { // the way back is fast; ends with far
		defer in.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := out.Read(buf)
			if err != nil {
				return
			}
			in.Write(buf[:n])
		}
	}()
	return near, far
}
