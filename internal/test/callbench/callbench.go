// Package callbench provides the common parts of benchmarks of calls.
package callbench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

var echo = asterisque.Func[string, string](10, "echo")

// Over measures echoes of 64 bytes over each of urls, which are URLs to listen at. It uses one
// caller and many callers, the typed API, and both ends in this process, so only the ratios of the
// results are meaningful.
func Over(b *testing.B, urls ...string) {
	for _, url := range urls {
		scheme, _, _ := strings.Cut(url, ":")
		for _, callers := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("%s/callers=%d", scheme, callers), func(b *testing.B) {
				s, text := connect(b, url), strings.Repeat("*", 64)
				InParallel(b, callers, func() error {
					_, err := echo.Call(context.Background(), s, text)
					return err
				})
			})
		}
	}
}

// connect returns the dialling end of a session, which ends with b.
func connect(b *testing.B, url string) *asterisque.Session {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	server, client := testtls.Configs(b)
	there, here := asterisque.NewNode(asterisque.WithService(svc)), asterisque.NewNode(asterisque.WithTLS(client))
	b.Cleanup(func() { here.Close(); there.Close() })
	l, err := wire.Listen(context.Background(), url, wire.Options{TLS: server})
	require.NoError(b, err)
	go there.Serve(context.Background(), l) // ends with the node
	s, err := here.Dial(context.Background(), l.URL())
	require.NoError(b, err)
	return s
}

// InParallel runs op b.N times on the given number of goroutines, and reports the rate per second.
func InParallel(b *testing.B, goroutines int, op func() error) {
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
