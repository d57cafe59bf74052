package asterisqueotel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// series returns the time series of a metric as text, sorted.
func series(a metricdata.Aggregation) (list []string) {
	ints := func(points []metricdata.DataPoint[int64]) {
		for _, p := range points {
			list = append(list, fmt.Sprint(p.Attributes.Encoded(attribute.DefaultEncoder()), " ", p.Value))
		}
	}
	switch a := a.(type) {
	case metricdata.Sum[int64]:
		ints(a.DataPoints)
	case metricdata.Sum[float64]:
		for _, p := range a.DataPoints {
			list = append(list, fmt.Sprint(p.Attributes.Encoded(attribute.DefaultEncoder()), " ", p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range a.DataPoints {
			list = append(list, fmt.Sprint(p.Attributes.Encoded(attribute.DefaultEncoder()), " ", p.Value >= 0))
		}
	}
	slices.Sort(list)
	return list
}

func TestObserve_Node(t *testing.T) {
	b := newBackend(t)
	svc := asterisque.NewService()
	began := make(chan struct{}, 2)
	svc.Handle(7, "solo", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, asterisque.WithConcurrency(1))
	svc.Handle(9, "fails", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		return nil, &asterisque.Abort{Code: asterisque.Code(params[0]) * 100}
	})
	server := asterisque.NewNode(asterisque.WithService(svc))
	unregister, err := Observe(b.meters.Meter("test"), server)
	require.NoError(t, err)
	require.Equal(t, []string{" 0"}, series(b.collect(t)["asterisque.sessions"]), "before there is anything")

	here, there := connect(t, asterisque.NewNode(asterisque.WithID("it does not depend on the peer")), server)
	for _, code := range []byte{15, 15, 20} {
		_, err = here.Call(t.Context(), 9, []byte{code})
		require.Error(t, err)
	}
	first, err := here.Open(t.Context(), 7, nil)
	require.NoError(t, err)
	<-began
	require.NoError(t, first.Send(t.Context(), make([]byte, 1000)))
	_, err = here.Open(t.Context(), 7, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { st := there.Stats(); return st.Waiting == 1 && st.Inbound.Messages == 2 }, hangs, time.Millisecond)

	st := there.Stats()
	require.Greater(t, st.Inbound.Bytes, 1000)
	require.Greater(t, st.Classes.Calls.Promised, st.Classes.Calls.Held)
	shares := func(of func(asterisque.Share) int) (list []string) {
		for _, s := range []struct {
			name  string
			share asterisque.Share
		}{{"calls", st.Classes.Calls}, {"elastic", st.Classes.Elastic}, {"large", st.Classes.Large}, {"made", st.Classes.Made}, {"nested", st.Classes.Nested}, {"served", st.Classes.Served}} {
			list = append(list, fmt.Sprintf("asterisque.share=%s %d", s.name, of(s.share)))
		}
		return list
	}
	want := map[string][]string{
		"asterisque.room.size":      shares(func(s asterisque.Share) int { return s.Room }),
		"asterisque.room.promised":  shares(func(s asterisque.Share) int { return s.Promised }),
		"asterisque.room.held":      slices.Sorted(slices.Values(append(shares(func(s asterisque.Share) int { return s.Held }), fmt.Sprint("asterisque.share=running ", st.Holding)))),
		"asterisque.answers.parked": {" 0"},
		"asterisque.waiting":        {"asterisque.reason=large 0", "asterisque.reason=opens 0", "asterisque.reason=outbound 0", "asterisque.reason=place 0", "asterisque.reason=window 0"},
		"asterisque.waits":          {"asterisque.reason=opens 0", "asterisque.reason=outbound 0", "asterisque.reason=place 0", "asterisque.reason=reader 0", "asterisque.reason=window 0"},
		"asterisque.waited":         {"asterisque.reason=opens 0", "asterisque.reason=outbound 0", "asterisque.reason=place 0", "asterisque.reason=reader 0", "asterisque.reason=window 0"},
		"asterisque.sessions":       {" 1"},
		"asterisque.pipes":          {" 2"},
		"asterisque.calls.waiting":  {" 1"},
		"asterisque.calls.running":  {" 1"},
		"asterisque.held.messages":  {"asterisque.direction=inbound 2", "asterisque.direction=outbound 0"},
		"asterisque.held.bytes":     {fmt.Sprintf("asterisque.direction=inbound %d", st.Inbound.Bytes), "asterisque.direction=outbound 0"},
		"asterisque.workers.wanted": {" 0"},
		"asterisque.path.in_flight": {" 0"},
		"asterisque.path.rate":      {" true"},
		"asterisque.path.sessions": {
			"asterisque.bound=application 1", "asterisque.bound=path 0", "asterisque.bound=peer 0", "asterisque.bound=room 0", "asterisque.bound=window 0",
		},
		"asterisque.budget.held": {" 16384"},
		"asterisque.budget.size": {fmt.Sprint(" ", server.Stats().Budget)},
		"asterisque.session.limits": {
			"asterisque.direction=inbound,asterisque.state=congested 0", "asterisque.direction=inbound,asterisque.state=hard 0",
			"asterisque.direction=inbound,asterisque.state=ready 1", "asterisque.direction=inbound,asterisque.state=soft 0",
			"asterisque.direction=outbound,asterisque.state=congested 0", "asterisque.direction=outbound,asterisque.state=hard 0",
			"asterisque.direction=outbound,asterisque.state=ready 1", "asterisque.direction=outbound,asterisque.state=soft 0",
		},
		"asterisque.function.calls":    {"asterisque.function=7,rpc.method=solo 2", "asterisque.function=9,rpc.method=fails 3"},
		"asterisque.function.failures": {"asterisque.function=9,error.type=application,rpc.method=fails 3"},
		"asterisque.function.ran": {
			"asterisque.function=9,asterisque.quantile=0.5,rpc.method=fails true", "asterisque.function=9,asterisque.quantile=0.95,rpc.method=fails true",
			"asterisque.function=9,asterisque.quantile=0.99,rpc.method=fails true",
		},
		"asterisque.function.queued": {
			"asterisque.function=7,asterisque.quantile=0.5,rpc.method=solo true", "asterisque.function=7,asterisque.quantile=0.95,rpc.method=solo true",
			"asterisque.function=7,asterisque.quantile=0.99,rpc.method=solo true", "asterisque.function=9,asterisque.quantile=0.5,rpc.method=fails true",
			"asterisque.function=9,asterisque.quantile=0.95,rpc.method=fails true", "asterisque.function=9,asterisque.quantile=0.99,rpc.method=fails true",
		},
	}
	found := b.collect(t)
	for name, list := range want {
		require.Equal(t, list, series(found[name]), name)
	}
	require.Len(t, series(found["asterisque.workers"]), 2)
	require.Len(t, found, len(want)+1, "and nothing else")

	require.NoError(t, unregister())
	require.Empty(t, series(b.collect(t)["asterisque.sessions"]), "no more observations")
	require.NoError(t, unregister(), "once more does nothing")
}

func TestObserve_Waits(t *testing.T) {
	b := newBackend(t)
	svc := asterisque.NewService()
	svc.Handle(7, "stays", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, nil })
	client := asterisque.NewNode()
	_, err := Observe(b.meters.Meter("test"), client)
	require.NoError(t, err)
	server := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}), asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Bytes: 64 << 10}}}))
	here, there := connect(t, client, server)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { here.Call(context.Background(), 7, make([]byte, 6<<10)) })
	}
	require.Eventually(t, func() bool {
		// room that the running call has returned may have admitted one more call
		waits := here.Stats().WaitOpens.Now
		return there.Stats().Running == 1 && waits > 0 && waits+there.Stats().Waiting == 9 &&
			slices.Contains(series(b.collect(t)["asterisque.waiting"]), fmt.Sprintf("asterisque.reason=opens %d", waits))
	}, hangs, time.Millisecond)
	here.Close()
	wg.Wait()
	found := b.collect(t)
	require.Contains(t, series(found["asterisque.waiting"]), "asterisque.reason=opens 0")
	require.NotContains(t, series(found["asterisque.waits"]), "asterisque.reason=opens 0", "counts stay when the session has ended")
	require.NotContains(t, series(found["asterisque.waited"]), "asterisque.reason=opens 0")
}

func TestObserve_Attributes(t *testing.T) {
	b := newBackend(t)
	here, there := asterisque.NewNode(), asterisque.NewNode()
	connect(t, here, there)
	third := asterisque.NewNode()
	defer third.Close()
	for name, n := range map[string]*asterisque.Node{"here": here, "there": there, "third": third} {
		_, err := Observe(b.meters.Meter("test"), n, attribute.String("node", name))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"node=here 1", "node=there 1", "node=third 0"}, series(b.collect(t)["asterisque.sessions"]))
}

func TestObserve_RefusedInstrument(t *testing.T) {
	node := asterisque.NewNode()
	defer node.Close()
	for _, m := range []metric.Meter{refuses{instruments: true}, refuses{}} {
		unregister, err := Observe(m, node)
		require.ErrorIs(t, err, errRefused)
		require.Nil(t, unregister)
	}
}

var errRefused = errors.New("refused")

// refuses is a meter that rejects some instruments, or callbacks.
type refuses struct {
	noop.Meter
	instruments bool
}

func (r refuses) Float64ObservableGauge(string, ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	if r.instruments {
		return noop.Float64ObservableGauge{}, errRefused
	}
	return noop.Float64ObservableGauge{}, nil
}

func (r refuses) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errRefused
}
