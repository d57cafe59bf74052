package asterisqueotel

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// measured returns the number of measured calls of a side.
func (b *backend) measured(t testing.TB, name string) (n uint64) {
	t.Helper()
	h, _ := b.collect(t)[name].(metricdata.Histogram[float64])
	for _, p := range h.DataPoints {
		n += p.Count
	}
	return n
}

// onGoroutine runs f, which may end its goroutine.
func onGoroutine(f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	<-over
}

func TestSpan_GoroutineEnds(t *testing.T) {
	exits := func(context.Context, *asterisque.Call, asterisque.Next) error { runtime.Goexit(); return nil }
	handled := func(h func() (string, error)) asterisque.Option {
		svc := asterisque.NewService()
		greet.Handle(svc, func(context.Context, string) (string, error) { return h() })
		return asterisque.WithService(svc)
	}
	fine := handled(func() (string, error) { return "", nil })
	call := func(t *testing.T, s *asterisque.Session) { greet.Call(t.Context(), s, "x") }
	for name, c := range map[string]struct {
		here, there func(b *backend) *asterisque.Node
		call        func(*testing.T, *asterisque.Session)
		metric      string
	}{
		"of a handler": {
			func(*backend) *asterisque.Node { return asterisque.NewNode() },
			func(b *backend) *asterisque.Node {
				return b.node(handled(func() (string, error) { runtime.Goexit(); return "", nil }))
			}, call, "rpc.server.call.duration",
		},
		"of an interceptor of a handler": {
			func(*backend) *asterisque.Node { return asterisque.NewNode() },
			func(b *backend) *asterisque.Node {
				return asterisque.NewNode(fine, asterisque.WithInboundInterceptors(b.trusting(), exits))
			}, call, "rpc.server.call.duration",
		},
		"of an interceptor of a caller": {
			func(b *backend) *asterisque.Node {
				return asterisque.NewNode(asterisque.WithOutboundInterceptors(b.trusting(), exits))
			},
			func(*backend) *asterisque.Node { return asterisque.NewNode(fine) }, call, "rpc.client.call.duration",
		},
		"of an interceptor of a stream": {
			func(b *backend) *asterisque.Node {
				return asterisque.NewNode(asterisque.WithOutboundInterceptors(b.trusting(), exits))
			},
			func(*backend) *asterisque.Node { return asterisque.NewNode(fine) },
			func(t *testing.T, s *asterisque.Session) { s.Open(t.Context(), 10, nil) }, "rpc.client.call.duration",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			here, _ := connect(t, c.here(b), c.there(b))
			onGoroutine(func() { c.call(t, here) })
			require.Equal(t, "panicked", attributes(b.ended(t, 1)[0])["error.type"])
			require.EqualValues(t, 1, b.measured(t, c.metric))
		})
	}
}

// waiting is a stream that runs until its context ends.
func waiting() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(50, "waits", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return svc
}

func TestSpan_StreamEndsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		around []asterisque.Interceptor // around the span
		within []asterisque.Interceptor
		use    func(ctx context.Context, s *asterisque.Session)
		want   string
	}{
		"it is aborted, without a Result": {use: func(ctx context.Context, s *asterisque.Session) {
			if p, err := s.Open(ctx, 50, nil); err == nil {
				p.Abort(asterisque.ErrUnauthorized)
			}
		}, want: "unauthorized"},
		"its session ends": {use: func(ctx context.Context, s *asterisque.Session) {
			if _, err := s.Open(ctx, 50, nil); err == nil {
				s.Close()
			}
		}, want: "session closed"},
		"it never opens": {use: func(ctx context.Context, s *asterisque.Session) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			s.Open(ctx, 50, nil)
		}, want: "canceled"},
		"the one within refuses it once it is open": {
			within: []asterisque.Interceptor{func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				if err := next(ctx, c); err != nil {
					return err
				}
				return asterisque.ErrUnauthorized
			}},
			use: func(ctx context.Context, s *asterisque.Session) { s.Open(ctx, 50, nil) }, want: "unauthorized",
		},
		"the one around refuses it once it is open": {
			around: []asterisque.Interceptor{func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				if err := next(ctx, c); err != nil {
					return err
				}
				return asterisque.ErrUnauthorized
			}},
			use: func(ctx context.Context, s *asterisque.Session) { s.Open(ctx, 50, nil) }, want: "canceled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			here := asterisque.NewNode(asterisque.WithOutboundInterceptors(append(append(c.around, b.trusting()), c.within...)...))
			sess, _ := connect(t, here, asterisque.NewNode(asterisque.WithService(waiting())))
			c.use(t.Context(), sess)
			require.Equal(t, c.want, attributes(b.ended(t, 1)[0])["error.type"])
			sess.Close()
			require.EqualValues(t, 1, b.measured(t, "rpc.client.call.duration"))
		})
	}
}

func TestSpan_AroundConnection(t *testing.T) {
	b := newBackend(t)
	there := asterisque.NewNode(asterisque.WithService(surrounding()))
	ln, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() { there.Serve(context.Background(), ln) })
	defer serving.Wait()
	defer there.Close()
	here := b.node()
	defer here.Close()
	conn, err := here.Connect(t.Context(), ln.URL(), asterisque.ReconnectConfig{})
	require.NoError(t, err)
	_, err = surround.Call(t.Context(), asterisque.Intercept(conn, b.trusting()), "x")
	require.NoError(t, err)
	spans := b.ended(t, 2)
	inner, outer := spans[0], spans[1]
	require.Equal(t, outer.SpanContext.SpanID(), inner.Parent.SpanID())
	require.NotContains(t, attributes(outer), "network.peer.address")
	require.Contains(t, attributes(inner), "network.peer.address")
}

func TestSpan_TwoInterceptors(t *testing.T) {
	b := newBackend(t)
	svc := asterisque.NewService()
	surround.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil }, asterisque.WithFunctionInterceptors(b.trusting()))
	here, _ := connect(t, b.node(), b.node(asterisque.WithService(svc)))
	_, err := surround.Call(t.Context(), here, "x")
	require.NoError(t, err)
	spans := b.ended(t, 3) // in the order of their ends, except for spans of different sides
	client := find(t, spans, trace.SpanKindClient, "surround").SpanContext
	spans = slices.DeleteFunc(spans, func(s tracetest.SpanStub) bool { return s.SpanKind == trace.SpanKindClient })
	inner, outer := spans[0], spans[1]
	require.Equal(t, client.SpanID(), outer.Parent.SpanID())
	require.Equal(t, outer.SpanContext.SpanID(), inner.Parent.SpanID())
	require.Equal(t, client.TraceID(), inner.SpanContext.TraceID())
}
