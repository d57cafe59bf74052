package quicwire

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
	"github.com/asterisque-go/asterisque/wire"
)

var echo = asterisque.Func[string, string](10, "echo")

// service returns a service with an echo, and a sink for streams of bytes.
func service() *asterisque.Service {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	svc.Handle(1, "sink", func(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		_, err := io.Copy(io.Discard, stream.NewReader(p))
		return nil, err
	})
	return svc
}

// serve serves at a URL until t ends, and returns the URL and a node that can dial it.
func serve(t testing.TB, url string, opts ...asterisque.Option) (l wire.Listener, here *asterisque.Node, client *tls.Config) {
	t.Helper()
	server, client := testtls.Configs(t)
	l, err := wire.Listen(background, url, wire.Options{TLS: server})
	require.NoError(t, err)
	there := asterisque.NewNode(append(opts, asterisque.WithService(service()))...)
	here = asterisque.NewNode(append(opts, asterisque.WithTLS(client))...)
	go there.Serve(background, l) // ends with the node
	t.Cleanup(func() {
		here.Close()
		there.Close()
	})
	return l, here, client
}

// overEach runs a benchmark over TCP, TLS and QUIC, so that one run gives the ratios.
func overEach(b *testing.B, run func(b *testing.B, sess *asterisque.Session)) {
	for _, scheme := range []string{"tcp", "tls", "quic"} {
		b.Run(scheme, func(b *testing.B) {
			l, here, _ := serve(b, scheme+"://127.0.0.1:0")
			sess, err := here.Dial(background, l.URL())
			require.NoError(b, err)
			run(b, sess)
		})
	}
}

// BenchmarkCall is a 64-byte echo by concurrent callers, with both ends in this process.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			overEach(b, func(b *testing.B, sess *asterisque.Session) {
				call(b, slices.Repeat([]*asterisque.Session{sess}, callers))
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		})
	}
}

// BenchmarkBulk sends bytes in one direction, in writes of 64 KiB, over one stream of a session.
func BenchmarkBulk(b *testing.B) {
	overEach(b, func(b *testing.B, sess *asterisque.Session) {
		p, err := sess.Open(background, 1, nil)
		require.NoError(b, err)
		w, payload := stream.NewWriter(p), make([]byte, 64<<10)
		b.SetBytes(int64(len(payload)))
		b.ReportAllocs()
		for b.Loop() {
			_, err := w.Write(payload)
			require.NoError(b, err)
		}
		require.NoError(b, w.Close())
		_, err = p.Result(background)
		require.NoError(b, err)
	})
}

// BenchmarkCallsOverALossyPath has 64 callers, first on one session, which is one QUIC stream, and
// then on a session each, as if each pipe had its own QUIC stream. The path has a round-trip time
// of 20 ms.
func BenchmarkCallsOverALossyPath(b *testing.B) {
	const callers = 64
	for _, loss := range []float64{0, 0.01, 0.05} {
		for _, streams := range []int{1, callers} {
			b.Run(fmt.Sprintf("loss=%v/streams=%d", loss, streams), func(b *testing.B) {
				sessions, end := overPath(b, loss, streams)
				defer end()
				call(b, slices.Repeat(sessions, callers/streams))
			})
		}
	}
}

// BenchmarkCallsBesideBulkOverALossyPath has one caller of high priority beside a transfer that
// saturates the path, first on the same session, and then on another session of the connection: the
// difference is the delay by lost packets of the transfer.
func BenchmarkCallsBesideBulkOverALossyPath(b *testing.B) {
	for _, loss := range []float64{0, 0.01} {
		for _, streams := range []int{1, 2} {
			b.Run(fmt.Sprintf("loss=%v/streams=%d", loss, streams), func(b *testing.B) {
				sessions, end := overPath(b, loss, streams)
				defer end()
				ctx, cancel := context.WithCancel(background)
				p, err := sessions[len(sessions)-1].Open(ctx, 1, nil)
				require.NoError(b, err)
				var bulk sync.WaitGroup
				bulk.Go(func() { // ends with ctx
					w, payload := stream.NewWriter(p), make([]byte, 64<<10)
					for {
						if _, err := w.Write(payload); err != nil {
							return
						}
					}
				})
				call(b, sessions[:1], asterisque.WithPriority(100))
				cancel()
				bulk.Wait()
			})
		}
	}
}

// overPath returns sessions, one per stream of a single connection, over a path with a round trip
// of 20 ms.
func overPath(b *testing.B, loss float64, streams int) (sessions []*asterisque.Session, end func()) {
	b.Helper()
	l, here, client := serve(b, "quic://127.0.0.1:0")
	r := newRelay(b, address(l), 10*time.Millisecond, loss)
	conn, err := Dial(background, r.address(), client)
	require.NoError(b, err)
	for range streams {
		w, err := conn.Open()
		require.NoError(b, err)
		sess, err := here.Attach(background, w)
		require.NoError(b, err)
		sessions = append(sessions, sess)
	}
	return sessions, func() {
		endAll(l)
		conn.Close()
	}
}

// call makes b.N calls, with one caller for each of sessions, and reports their latency.
func call(b *testing.B, sessions []*asterisque.Session, opts ...asterisque.CallOption) {
	text := strings.Repeat("*", 64)
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, len(sessions))
	b.ReportAllocs()
	b.ResetTimer()
	var callers sync.WaitGroup
	for i, sess := range sessions {
		callers.Go(func() {
			for left.Add(-1) >= 0 {
				begin := time.Now()
				if _, err := echo.Call(background, sess, text, opts...); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(begin))
			}
		})
	}
	callers.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(all[(len(all)-1)*p/100].Microseconds()), fmt.Sprintf("p%d-µs", p))
	}
}
