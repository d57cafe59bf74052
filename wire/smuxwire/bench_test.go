package smuxwire_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

var echo = asterisque.Func[string, string](10, "echo")

// BenchmarkCallsOverSmux is a 64-byte echo through the typed API, both ends in this process, over each transport.
func BenchmarkCallsOverSmux(b *testing.B) {
	server, client := tlsOptions(b)
	for _, url := range []string{"tcp://127.0.0.1:0", "smux://127.0.0.1:0", "tls://127.0.0.1:0", "smux+tls://127.0.0.1:0"} {
		scheme, _, _ := strings.Cut(url, ":")
		for _, callers := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("%s/callers=%d", scheme, callers), func(b *testing.B) {
				sess := session(b, url, server, client)
				text := strings.Repeat("*", 64)
				inParallel(b, callers, func() error {
					_, err := echo.Call(context.Background(), sess, text)
					return err
				})
			})
		}
	}
}

// session returns the dialling end of a session.
func session(t testing.TB, url string, server, client wire.Options) *asterisque.Session {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	there := asterisque.NewNode(asterisque.WithService(svc))
	here := asterisque.NewNode(asterisque.WithTLS(client.TLS))
	t.Cleanup(func() { here.Close(); there.Close() })
	l := listen(t, url, server)
	go there.Serve(context.Background(), l) // ends with the node
	sess, err := here.Dial(context.Background(), l.URL())
	require.NoError(t, err)
	return sess
}

// inParallel runs op b.N times on that many goroutines.
func inParallel(b *testing.B, goroutines int, op func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := op(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
