package asterisqueotel

import (
	"context"
	"crypto/tls"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// hangs is the time limit for an event, long enough for slow machines.
const hangs = 2 * time.Minute

// backend receives the spans and metrics of a test.
type backend struct {
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	meters *sdkmetric.MeterProvider
	opts   []Option
}

func newBackend(t testing.TB, opts ...sdktrace.TracerProviderOption) *backend {
	b := &backend{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	traces := sdktrace.NewTracerProvider(append(opts, sdktrace.WithSyncer(b.spans))...)
	b.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader))
	t.Cleanup(func() {
		require.NoError(t, traces.Shutdown(context.Background()))
		require.NoError(t, b.meters.Shutdown(context.Background()))
	})
	b.opts = []Option{WithTracerProvider(traces), WithMeterProvider(b.meters)}
	return b
}

// node returns a node with followed calls that trusts every peer.
func (b *backend) node(opts ...asterisque.Option) *asterisque.Node {
	return followed(b.trusting(), opts...)
}

// trusting returns an interceptor that trusts every peer.
func (b *backend) trusting() asterisque.Interceptor {
	return Interceptor(append(b.opts, WithTrust(everybody))...)
}

// followed returns a node with i around its calls.
func followed(i asterisque.Interceptor, opts ...asterisque.Option) *asterisque.Node {
	return asterisque.NewNode(append(opts, asterisque.WithOutboundInterceptors(i), asterisque.WithInboundInterceptors(i))...)
}

func everybody(asterisque.Peer) bool { return true }

// collect returns the present values of all metrics, by name.
func (b *backend) collect(t testing.TB) map[string]metricdata.Aggregation {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, b.reader.Collect(context.Background(), &all))
	found := map[string]metricdata.Aggregation{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			found[m.Name] = m.Data
		}
	}
	return found
}

// connect returns both ends of a session over TCP; the nodes are closed with the test, before the
// providers are shut down.
func connect(t testing.TB, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
	t.Helper()
	return connectTLS(t, here, there, nil)
}

// connectTLS is connect with the TLS configuration of the accepting side.
func connectTLS(t testing.TB, here, there *asterisque.Node, server *tls.Config) (dialled, accepted *asterisque.Session) {
	t.Helper()
	url := "tcp://127.0.0.1:0"
	if server != nil {
		url = "tls://127.0.0.1:0"
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	ln, err := wire.Listen(context.Background(), url, wire.Options{TLS: server})
	require.NoError(t, err)
	defer ln.Close()
	var accepting sync.WaitGroup
	accepting.Go(func() {
		if w, err := ln.Accept(); err == nil {
			accepted, _ = there.Accept(context.Background(), w)
		}
	})
	dialled, err = here.Dial(context.Background(), ln.URL())
	require.NoError(t, err)
	accepting.Wait()
	require.NotNil(t, accepted)
	return dialled, accepted
}
