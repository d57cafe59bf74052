package asterisqueotel

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/asterisque-go/asterisque"
)

func TestObservePath_ManySessions(t *testing.T) {
	b := newBackend(t)
	var o observer
	all, err := o.paths.instruments(b.meters.Meter("test"))
	require.NoError(t, err)
	var p pathTotals
	p.add(asterisque.Path{Bound: asterisque.BoundByRoom})
	for i := range 100 {
		p.add(asterisque.Path{RoundTrip: time.Duration(100-i) * time.Millisecond, Rate: 1e6, InFlight: 1000, Limit: 2000, Bound: asterisque.BoundByPath})
	}
	_, err = b.meters.Meter("test").RegisterCallback(func(_ context.Context, to metric.Observer) error {
		o.observePaths(to, &p)
		return nil
	}, all...)
	require.NoError(t, err)
	found := b.collect(t)
	require.Equal(t, []string{
		"asterisque.bound=application 0", "asterisque.bound=path 100", "asterisque.bound=peer 0", "asterisque.bound=room 1", "asterisque.bound=window 0",
	}, series(found["asterisque.path.sessions"]))
	require.Equal(t, []string{" 100000"}, series(found["asterisque.path.in_flight"]))
	gauges := map[string]float64{}
	for _, name := range []string{"asterisque.path.rate", "asterisque.path.round_trip"} {
		for _, point := range found[name].(metricdata.Gauge[float64]).DataPoints {
			gauges[fmt.Sprint(name, " ", point.Attributes.Encoded(attribute.DefaultEncoder()))] = point.Value
		}
	}
	require.Equal(t, map[string]float64{
		"asterisque.path.rate ":                               1e8,
		"asterisque.path.round_trip asterisque.quantile=0.5":  0.05,
		"asterisque.path.round_trip asterisque.quantile=0.95": 0.095,
		"asterisque.path.round_trip asterisque.quantile=0.99": 0.099,
	}, gauges)
}

func TestObservePath_RoundTrip(t *testing.T) {
	for n, want := range map[int][3]time.Duration{1: {1, 1, 1}, 2: {1, 2, 2}, 3: {2, 3, 3}, 20: {10, 19, 20}} {
		var p pathTotals
		for i := range n {
			p.add(asterisque.Path{RoundTrip: time.Duration(i + 1)})
		}
		p.add(asterisque.Path{}) // without a known round trip
		require.Equal(t, want, [3]time.Duration{p.quantile(50), p.quantile(95), p.quantile(99)}, n)
	}
}
