package asterisqueotel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/asterisque-go/asterisque"
)

// TestMetrics_Conventions checks the name, the unit, the boundaries and the attributes of both
// histograms, for calls and for streams.
func TestMetrics_Conventions(t *testing.T) {
	b := newBackend(t)
	svc := asterisque.NewService()
	greet.Handle(svc, func(_ context.Context, s string) (string, error) {
		switch s {
		case "denied":
			return "", asterisque.ErrUnauthorized
		case "sold out":
			return "", &asterisque.Abort{Code: 1042}
		}
		return s, nil
	})
	count.Handle(svc, func(context.Context, int, *asterisque.Pipe[int, int]) (int, error) { return 0, nil })
	here, there := b.node(), b.node(asterisque.WithService(svc))
	sess, _ := connect(t, here, there)
	for _, s := range []string{"x", "y", "denied", "sold out"} {
		greet.Call(t.Context(), sess, s)
	}
	p, err := count.Open(t.Context(), sess, 0)
	require.NoError(t, err)
	_, err = p.Result(t.Context())
	require.NoError(t, err)
	b.ended(t, 10)

	var all metricdata.ResourceMetrics
	require.NoError(t, b.reader.Collect(t.Context(), &all))
	require.Len(t, all.ScopeMetrics, 1)
	require.Equal(t, scope, all.ScopeMetrics[0].Scope.Name)
	require.Contains(t, all.ScopeMetrics[0].Scope.SchemaURL, "opentelemetry.io/schemas/")
	of := func(method string, more ...attribute.KeyValue) attribute.Set {
		return attribute.NewSet(append(more, attribute.String("rpc.system.name", "asterisque"), attribute.String("rpc.method", method))...)
	}
	want := map[attribute.Set]uint64{
		of("greet"): 2,
		of("greet", attribute.String("error.type", "unauthorized"), attribute.String("rpc.response.status_code", "unauthorized")): 1,
		of("greet", attribute.String("error.type", "application")):                                                                1,
		of("count"): 1,
	}
	found := map[string]bool{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		found[m.Name] = true
		require.Equal(t, "s", m.Unit)
		require.NotEmpty(t, m.Description)
		h := m.Data.(metricdata.Histogram[float64])
		counts := map[attribute.Set]uint64{}
		for _, p := range h.DataPoints {
			require.Equal(t, []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}, p.Bounds)
			counts[p.Attributes] = p.Count
		}
		require.Equal(t, want, counts, m.Name)
	}
	require.Equal(t, map[string]bool{"rpc.client.call.duration": true, "rpc.server.call.duration": true}, found, "and no more")
}
