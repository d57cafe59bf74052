package asterisqueotel

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/rpcconv"
	"go.opentelemetry.io/otel/trace"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// scope is the name of this instrumentation.
const scope = "github.com/asterisque-go/asterisque/otel"

const (
	system  = "asterisque"
	unnamed = "_OTHER" // by the semantic conventions

	functionKey = attribute.Key("asterisque.function") // the number
)

// Option sets one property of an [Interceptor].
type Option func(*config)

type config struct {
	traces  trace.TracerProvider
	metrics metric.MeterProvider
	trust   func(asterisque.Peer) bool
}

// WithTracerProvider sets the destination of spans. The default is the global provider of
// OpenTelemetry.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.traces = p } }

// WithMeterProvider sets the destination of call durations. The default is the global provider of
// OpenTelemetry.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.metrics = p } }

// Interceptor returns an interceptor for outbound and served calls that creates a span for each
// call and measures its duration. Use it around all calls of a node:
//
//	traced := asterisqueotel.Interceptor()
//	node := asterisque.NewNode(asterisque.WithOutboundInterceptors(traced), asterisque.WithInboundInterceptors(traced))
//
// Interceptors outside of this one see no span. On a Connection it creates a span for each attempt.
// See [asterisque.Interceptor] for other places. One Interceptor may serve any number of nodes and
// is safe for concurrent use. An instrument that a provider rejects is reported to the error
// handler of OpenTelemetry, and then not measured.
func Interceptor(opts ...Option) asterisque.Interceptor {
	c := config{traces: otel.GetTracerProvider(), metrics: otel.GetMeterProvider(), trust: proven}
	for _, o := range opts {
		o(&c)
	}
	t := &instrumentation{spans: c.traces.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)), trust: c.trust}
	meter := c.metrics.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	var err error
	if t.made, err = rpcconv.NewClientCallDuration(meter); err != nil {
		otel.Handle(err)
	}
	if t.served, err = rpcconv.NewServerCallDuration(meter); err != nil {
		otel.Handle(err)
	}
	return t.intercept
}

// instrumentation is immutable.
type instrumentation struct {
	spans  trace.Tracer
	trust  func(asterisque.Peer) bool
	made   rpcconv.ClientCallDuration
	served rpcconv.ServerCallDuration
}

// intercept implements [asterisque.Interceptor].
func (t *instrumentation) intercept(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if c.Inbound() {
		inner, how := t.parent(ctx, c)
		inner, done := t.follow(inner, c, trace.SpanKindServer, t.served.Record, how...)
		return during(keepAfterFunc(inner, ctx), c, next, done)
	}
	ctx, done := t.follow(ctx, c, trace.SpanKindClient, t.made.Record)
	if sent := inject(ctx); sent != nil {
		c.SetTrace(sent) // which always fits
	}
	if c.Blocks() {
		return opening(withBaggage(ctx, c), c, next, done)
	}
	return during(withBaggage(ctx, c), c, next, done)
}

// histogramRecord is the Record of a histogram of rpcconv.
type histogramRecord func(ctx context.Context, val float64, systemName rpcconv.SystemNameAttr, attrs ...attribute.KeyValue)

// follow begins the span of a call. done, which is called once, ends it; c may be invalid by then.
func (t *instrumentation) follow(ctx context.Context, c *asterisque.Call, kind trace.SpanKind, record histogramRecord, how ...trace.SpanStartOption) (inner context.Context, done func(error)) {
	begin, name := time.Now(), c.Name()
	inner, span := t.start(ctx, c, kind, how...)
	return inner, func(err error) {
		record(inner, time.Since(begin).Seconds(), system, outcome(name, err)...)
		end(span, err)
	}
}

// errLost is the outcome of a call until next has returned. If the goroutine of the call ends, next
// never returns.
var errLost error = asterisque.ErrPanicked.Withf("the goroutine of the call has ended")

// during calls next, and calls done when the call is over.
func during(ctx context.Context, c *asterisque.Call, next asterisque.Next, done func(error)) error {
	err := errLost
	defer func() { done(err) }()
	err = next(ctx, c)
	return err
}

// opening calls next for an outbound call that carries Blocks, and calls done when the call is
// over, which may be long after its pipe was opened. If the pipe was opened but next returns an
// error, both the error and the end of the pipe report; the first one counts.
func opening(ctx context.Context, c *asterisque.Call, next asterisque.Next, done func(error)) error {
	var once sync.Once
	over := func(err error) { once.Do(func() { done(err) }) }
	err := c.WrapBlocks(asterisque.Blocks{End: func(result []byte, err error) ([]byte, error) {
		over(err)
		return result, err
	}})
	if err != nil {
		over(err)
		return err
	}
	err = errLost
	defer func() {
		if err != nil {
			over(err)
		}
	}()
	err = next(ctx, c)
	return err
}

// start begins the span of a call.
func (t *instrumentation) start(ctx context.Context, c *asterisque.Call, kind trace.SpanKind, how ...trace.SpanStartOption) (context.Context, trace.Span) {
	name, number := c.Name(), strconv.Itoa(int(c.Function()))
	title := name
	if name == "" {
		title = "function " + number
	}
	ctx, span := t.spans.Start(ctx, title, append(how, trace.WithSpanKind(kind), trace.WithAttributes(
		// available to samplers
		semconv.RPCSystemNameKey.String(system), method(name), functionKey.Int(int(c.Function())),
	))...)
	if !span.IsRecording() {
		return ctx, span
	}
	if name == "" {
		span.SetAttributes(semconv.RPCMethodOriginal(number))
	}
	if s := c.Session(); s != nil {
		locate(span, s.Peer().RemoteAddr)
	}
	return ctx, span
}

// locate sets the address of the peer.
func locate(span trace.Span, peer net.Addr) {
	switch a := peer.(type) {
	case *net.TCPAddr:
		span.SetAttributes(semconv.NetworkPeerAddress(a.IP.String()), semconv.NetworkPeerPort(a.Port))
	case net.Addr:
		span.SetAttributes(semconv.NetworkPeerAddress(a.String()))
	}
}

// longestMessage is how many bytes of an error's text a span keeps: the text may come from the
// peer.
const longestMessage = 1 << 10

// end ends the span of a call.
func end(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		code := codec.AbortOf(err).Code
		text := err.Error()
		span.SetStatus(codes.Error, strings.ToValidUTF8(text[:min(len(text), longestMessage)], ""))
		span.SetAttributes(semconv.RPCResponseStatusCode(statusCode(code)), semconv.ErrorTypeKey.String(statusCode(code)))
	}
	span.End()
}

// statusCode returns the meaning of a code, or its number if the application defined it.
func statusCode(c asterisque.Code) string {
	if isOfTheLibrary(c) {
		return c.String()
	}
	return strconv.Itoa(int(c))
}

func isOfTheLibrary(c asterisque.Code) bool { return c > 0 && c <= codec.Stopped }

// outcome returns the attributes of a metric, which have few values regardless of the peer: the
// codes of applications are not distinguished.
func outcome(name string, err error) []attribute.KeyValue {
	if err == nil {
		return []attribute.KeyValue{method(name)}
	}
	about := []attribute.KeyValue{method(name), errorType(err)}
	if code := codec.AbortOf(err).Code; isOfTheLibrary(code) {
		about = append(about, semconv.RPCResponseStatusCode(statusCode(code)))
	}
	return about
}

// class returns the meaning of an error's code if the library defines it, and "application"
// otherwise.
func class(err error) string {
	if c := codec.AbortOf(err).Code; isOfTheLibrary(c) {
		return c.String()
	}
	return "application"
}

func method(name string) attribute.KeyValue {
	if name == "" {
		name = unnamed
	}
	return semconv.RPCMethod(name)
}

// keepAfterFunc returns inner, which is derived from outer, with the AfterFunc of outer. It saves a
// goroutine for each context that a handler derives.
func keepAfterFunc(inner, outer context.Context) context.Context {
	if a, ok := outer.(afterFuncer); ok {
		return handlerContext{inner, a}
	}
	return inner
}

// afterFuncer is the interface that package context looks for.
type afterFuncer interface {
	AfterFunc(f func()) (stop func() bool)
}

type handlerContext struct {
	context.Context
	outer afterFuncer
}

// AfterFunc is like context.AfterFunc.
func (c handlerContext) AfterFunc(f func()) (stop func() bool) { return c.outer.AfterFunc(f) }
