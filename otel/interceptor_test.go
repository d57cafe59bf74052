package asterisqueotel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
)

var (
	greet    = asterisque.Func[string, string](10, "greet")
	surround = asterisque.Func[string, string](11, "surround")
	count    = asterisque.Stream[int, int, int, int](12, "count")
)

// ended waits until n spans have ended: the span of a server ends at about the time at which the
// caller gets its answer.
func (b *backend) ended(t testing.TB, n int) tracetest.SpanStubs {
	t.Helper()
	require.Eventually(t, func() bool { return len(b.spans.GetSpans()) >= n }, hangs, time.Millisecond)
	spans := b.spans.GetSpans()
	require.Len(t, spans, n)
	return spans
}

// find returns the span of one side of a call.
func find(t testing.TB, spans tracetest.SpanStubs, kind trace.SpanKind, name string) tracetest.SpanStub {
	t.Helper()
	for _, s := range spans {
		if s.SpanKind == kind && s.Name == name {
			return s
		}
	}
	require.Fail(t, "no such span", "%v %s in %v", kind, name, spans)
	return tracetest.SpanStub{}
}

func attributes(s tracetest.SpanStub) map[string]string {
	found := map[string]string{}
	for _, a := range s.Attributes {
		found[string(a.Key)] = a.Value.String()
	}
	return found
}

// greeting is a service with a greet that calls its caller back.
func greeting() *asterisque.Service {
	svc := asterisque.NewService()
	greet.Handle(svc, func(ctx context.Context, name string) (string, error) {
		star, err := surround.Call(ctx, asterisque.SessionOf(ctx), name)
		return "hello, " + star, err
	})
	return svc
}

func surrounding() *asterisque.Service {
	svc := asterisque.NewService()
	surround.Handle(svc, func(_ context.Context, s string) (string, error) { return "*" + s + "*", nil })
	return svc
}

func TestSpan_CallBack(t *testing.T) {
	b := newBackend(t)
	here, _ := connect(t, b.node(asterisque.WithService(surrounding())), b.node(asterisque.WithService(greeting())))
	said, err := greet.Call(t.Context(), here, "asterisk")
	require.NoError(t, err)
	require.Equal(t, "hello, *asterisk*", said)

	spans := b.ended(t, 4)
	var parent trace.SpanContext
	for _, want := range []struct {
		kind trace.SpanKind
		name string
	}{{trace.SpanKindClient, "greet"}, {trace.SpanKindServer, "greet"}, {trace.SpanKindClient, "surround"}, {trace.SpanKindServer, "surround"}} {
		s := find(t, spans, want.kind, want.name)
		require.Equal(t, parent.SpanID(), s.Parent.SpanID(), "each is the child of the one before, and the first has no parent: %v %s", want.kind, want.name)
		require.Equal(t, want.kind == trace.SpanKindServer, s.Parent.IsRemote(), "a received parent is remote")
		if parent.IsValid() {
			require.Equal(t, parent.TraceID(), s.SpanContext.TraceID(), "all are one trace")
		}
		require.Equal(t, codes.Unset, s.Status.Code)
		require.Equal(t, scope, s.InstrumentationScope.Name)
		a := attributes(s)
		require.Equal(t, "127.0.0.1", a["network.peer.address"])
		require.NotEmpty(t, a["network.peer.port"])
		delete(a, "network.peer.address")
		delete(a, "network.peer.port")
		number := map[string]string{"greet": "10", "surround": "11"}[want.name]
		require.Equal(t, map[string]string{"rpc.system.name": "asterisque", "rpc.method": want.name, "asterisque.function": number}, a)
		parent = s.SpanContext
	}
}

func TestSpan_Parent(t *testing.T) {
	b := newBackend(t)
	here, _ := connect(t, b.node(), asterisque.NewNode(asterisque.WithService(surrounding())))
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled}))
	_, err := surround.Call(ctx, here, "x")
	require.NoError(t, err)
	s := b.ended(t, 1)[0]
	require.Equal(t, trace.TraceID{1}, s.SpanContext.TraceID())
	require.Equal(t, trace.SpanID{2}, s.Parent.SpanID())
}

func TestSpan_PlainPeer(t *testing.T) {
	for name, madeHere := range map[string]bool{"calls made": true, "calls served": false} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			here, there := asterisque.NewNode(), b.node(asterisque.WithService(surrounding()))
			if madeHere {
				here, there = b.node(), asterisque.NewNode(asterisque.WithService(surrounding()))
			}
			sess, _ := connect(t, here, there)
			_, err := surround.Call(t.Context(), sess, "x")
			require.NoError(t, err)
			require.False(t, b.ended(t, 1)[0].Parent.IsValid(), "it is the root of its trace")
		})
	}
}

func TestSpan_NotSampled(t *testing.T) {
	never, always := newBackend(t, sdktrace.WithSampler(sdktrace.NeverSample())), newBackend(t)
	here, _ := connect(t, never.node(), always.node(asterisque.WithService(surrounding())))
	_, err := surround.Call(t.Context(), here, "x")
	require.NoError(t, err)
	here.Close()
	require.Empty(t, never.spans.GetSpans())
	require.Empty(t, always.spans.GetSpans(), "the sampler looks at the parent, which has travelled")
	require.NotEmpty(t, never.collect(t), "it is measured nevertheless")
}

func TestSpan_Stream(t *testing.T) {
	b := newBackend(t)
	svc := asterisque.NewService()
	count.Handle(svc, func(ctx context.Context, _ int, p *asterisque.Pipe[int, int]) (n int, err error) {
		for {
			if _, err := p.Recv(ctx); err != nil {
				return n, map[bool]error{false: err}[err == io.EOF]
			}
			n++
		}
	})
	here, _ := connect(t, b.node(), b.node(asterisque.WithService(svc)))
	call, err := count.Open(t.Context(), here, 0)
	require.NoError(t, err)
	require.NoError(t, call.Send(t.Context(), 1))
	require.Empty(t, b.spans.GetSpans(), "it runs")
	require.NoError(t, call.CloseSend())
	n, err := call.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	spans := b.ended(t, 2)
	require.Equal(t, find(t, spans, trace.SpanKindClient, "count").SpanContext.SpanID(), find(t, spans, trace.SpanKindServer, "count").Parent.SpanID())
}

func TestSpan_Error(t *testing.T) {
	long := strings.Repeat("é", longestMessage)
	for _, c := range []struct {
		err          error
		code, metric string
	}{
		{asterisque.ErrUnauthorized.Withf("not you"), "unauthorized", "unauthorized"},
		{&asterisque.Abort{Code: 1042, Message: "sold out"}, "1042", "application"},
		{&asterisque.Abort{Code: -3}, "-3", "application"},
		{&asterisque.Abort{Code: 999}, "999", "application"},
		{errors.New("broken"), "failed", "failed"},
		{errors.New(long), "failed", "failed"},
		{fmt.Errorf("while waiting: %w", context.DeadlineExceeded), "expired", "expired"},
	} {
		b := newBackend(t)
		svc := asterisque.NewService()
		greet.Handle(svc, func(context.Context, string) (string, error) { return "", c.err })
		here, _ := connect(t, b.node(), b.node(asterisque.WithService(svc)))
		_, err := greet.Call(t.Context(), here, "x")
		require.Error(t, err)
		for _, s := range b.ended(t, 2) {
			require.Equal(t, codes.Error, s.Status.Code)
			require.NotEmpty(t, s.Status.Description)
			require.LessOrEqual(t, len(s.Status.Description), longestMessage)
			a := attributes(s)
			require.Equal(t, []string{c.code, c.code}, []string{a["rpc.response.status_code"], a["error.type"]}, "%v", c.err)
		}
		for _, name := range []string{"rpc.client.call.duration", "rpc.server.call.duration"} {
			points := b.collect(t)[name].(metricdata.Histogram[float64]).DataPoints
			require.Len(t, points, 1)
			require.EqualValues(t, 1, points[0].Count)
			class, _ := points[0].Attributes.Value("error.type")
			require.Equal(t, c.metric, class.AsString())
		}
	}
}

func TestSpan_Panic(t *testing.T) {
	b := newBackend(t)
	svc := asterisque.NewService()
	greet.Handle(svc, func(context.Context, string) (string, error) { panic("no") })
	here, _ := connect(t, asterisque.NewNode(), b.node(asterisque.WithService(svc)))
	_, err := greet.Call(t.Context(), here, "x")
	require.ErrorIs(t, err, asterisque.ErrPanicked)
	require.Equal(t, "panicked", attributes(b.ended(t, 1)[0])["error.type"])
}

func TestSpan_UnsentCall(t *testing.T) {
	b := newBackend(t)
	here, _ := connect(t, b.node(), asterisque.NewNode())
	_, err := greet.Call(t.Context(), here, "x")
	require.ErrorIs(t, err, asterisque.ErrNoFunction)
	here.Close()
	_, err = greet.Call(t.Context(), here, "x")
	require.ErrorIs(t, err, asterisque.ErrSessionClosed)
	_, err = here.Open(t.Context(), 99, nil)
	require.ErrorIs(t, err, asterisque.ErrSessionClosed)
	var said []string
	for _, s := range b.ended(t, 3) {
		said = append(said, s.Name+": "+attributes(s)["error.type"])
	}
	require.Equal(t, []string{"greet: no such function", "greet: session closed", "function 99: session closed"}, said)
}

func TestSpan_UnnamedFunction(t *testing.T) {
	b := newBackend(t)
	svc := asterisque.NewService()
	svc.Handle(77, "", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil })
	here, _ := connect(t, b.node(), b.node(asterisque.WithService(svc)))
	_, err := here.Call(t.Context(), 77, nil)
	require.NoError(t, err)
	for _, s := range b.ended(t, 2) {
		require.Equal(t, "function 77", s.Name)
		a := attributes(s)
		require.Equal(t, []string{"_OTHER", "77", "77"}, []string{a["rpc.method"], a["rpc.method_original"], a["asterisque.function"]})
	}
}

func TestMetrics_FewValues(t *testing.T) {
	b := newBackend(t)
	svc := asterisque.NewService()
	const calls = 200
	svc.Handle(77, "", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		return nil, &asterisque.Abort{Code: asterisque.Code(1000 + int(params[0])), Message: fmt.Sprint("error ", params[0])}
	})
	for i := range 3 { // sessions
		here, _ := connect(t, b.node(asterisque.WithID(fmt.Sprint("peer ", i))), b.node(asterisque.WithService(svc)))
		for i := range calls {
			_, err := here.Call(t.Context(), 77, []byte{byte(i)})
			require.Error(t, err)
			_, err = here.Call(t.Context(), uint16(1000+i), nil)
			require.ErrorIs(t, err, asterisque.ErrNoFunction)
		}
	}
	sets := func(name string) (found []attribute.Set) {
		for _, p := range b.collect(t)[name].(metricdata.Histogram[float64]).DataPoints {
			found = append(found, p.Attributes)
		}
		return found
	}
	of := func(class string, more ...attribute.KeyValue) attribute.Set {
		return attribute.NewSet(append(more, attribute.String("rpc.system.name", "asterisque"), attribute.String("rpc.method", "_OTHER"), attribute.String("error.type", class))...)
	}
	none := attribute.String("rpc.response.status_code", "no such function")
	require.ElementsMatch(t, []attribute.Set{of("application"), of("no such function", none)}, sets("rpc.client.call.duration"))
	require.ElementsMatch(t, []attribute.Set{of("application")}, sets("rpc.server.call.duration"))
}

func TestMetrics_Seconds(t *testing.T) {
	b := newBackend(t)
	here, _ := connect(t, b.node(asterisque.WithService(surrounding())), b.node(asterisque.WithService(greeting())))
	begin := time.Now()
	for range 3 {
		_, err := greet.Call(t.Context(), here, "x")
		require.NoError(t, err)
	}
	most := time.Since(begin).Seconds()
	for _, p := range b.collect(t)["rpc.client.call.duration"].(metricdata.Histogram[float64]).DataPoints {
		require.EqualValues(t, 3, p.Count)
		require.Positive(t, p.Sum)
		require.LessOrEqual(t, p.Sum, most)
		require.False(t, p.Attributes.HasValue("error.type"), "success has none")
	}
}

// goroutines counts the goroutines at one moment: runtime.NumGoroutine is sometimes far too high
// while goroutines start and end.
func goroutines() int {
	n, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
	return n
}

// TestSpan_NoGoroutines fails if the span's context hides the AfterFunc of the handler's context.
func TestSpan_NoGoroutines(t *testing.T) {
	b := newBackend(t)
	svc := asterisque.NewService()
	began, ended := make(chan int), make(chan context.Context, 1)
	svc.Handle(5, "wait", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		before := goroutines()
		var last context.Context
		for range 100 {
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			last = derived
		}
		began <- goroutines() - before
		<-last.Done()
		ended <- last
		return nil, ctx.Err()
	})
	here, there := connect(t, asterisque.NewNode(), b.node(asterisque.WithService(svc)))
	p, err := here.Open(t.Context(), 5, nil)
	require.NoError(t, err)
	require.Less(t, <-began, 50, "a hundred contexts need no hundred goroutines")
	p.Abort(nil)
	last := <-ended
	require.ErrorIs(t, last.Err(), context.Canceled, "they end with the call")
	require.Equal(t, there, asterisque.SessionOf(last))
	require.True(t, trace.SpanContextFromContext(last).IsValid())
	require.Equal(t, "canceled", attributes(b.ended(t, 1)[0])["error.type"])
}
