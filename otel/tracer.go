package asterisqueotel

import (
	"context"
	"net"
	"strconv"
	"strings"
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

// Option sets one property of a [Tracer].
type Option func(*config)

type config struct {
	traces  trace.TracerProvider
	metrics metric.MeterProvider
	trust   func(asterisque.Peer) bool
}

// WithTracerProvider sets where spans go. The default is the global one of OpenTelemetry.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.traces = p } }

// WithMeterProvider sets where the durations of calls go. The default is the global one of
// OpenTelemetry.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.metrics = p } }

// Tracer returns what [asterisque.WithTracer] takes: it makes a span of each call on either side,
// and measures how long it took. One may serve any number of nodes; it is safe for concurrent use.
// What the providers refuse is reported to the error handler of OpenTelemetry, and then not
// measured.
func Tracer(opts ...Option) asterisque.Tracer {
	c := config{traces: otel.GetTracerProvider(), metrics: otel.GetMeterProvider(), trust: proven}
	for _, o := range opts {
		o(&c)
	}
	t := &tracer{spans: c.traces.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)), trust: c.trust}
	meter := c.metrics.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	var err error
	if t.made, err = rpcconv.NewClientCallDuration(meter); err != nil {
		otel.Handle(err)
	}
	if t.served, err = rpcconv.NewServerCallDuration(meter); err != nil {
		otel.Handle(err)
	}
	return t
}

// tracer implements asterisque.Tracer. It does not change.
type tracer struct {
	spans  trace.Tracer
	trust  func(asterisque.Peer) bool
	made   rpcconv.ClientCallDuration
	served rpcconv.ServerCallDuration
}

// Call implements asterisque.Tracer.
func (t *tracer) Call(ctx context.Context, s *asterisque.Session, function uint16, name string) ([]byte, func(error)) {
	begin := time.Now()
	ctx, span := t.start(ctx, s, trace.SpanKindClient, function, name)
	return inject(ctx), func(err error) {
		t.made.Record(ctx, time.Since(begin).Seconds(), system, outcome(name, err)...)
		end(span, err)
	}
}

// Serve implements asterisque.Tracer.
func (t *tracer) Serve(ctx context.Context, s *asterisque.Session, function uint16, name string, sent []byte) (context.Context, func(error)) {
	begin := time.Now()
	inner, how := t.parent(ctx, s, sent)
	inner, span := t.start(inner, s, trace.SpanKindServer, function, name, how...)
	return keepAfterFunc(inner, ctx), func(err error) {
		t.served.Record(inner, time.Since(begin).Seconds(), system, outcome(name, err)...)
		end(span, err)
	}
}

// start begins the span of a call.
func (t *tracer) start(ctx context.Context, s *asterisque.Session, kind trace.SpanKind, function uint16, name string, how ...trace.SpanStartOption) (context.Context, trace.Span) {
	title := name
	if name == "" {
		title = "function " + strconv.Itoa(int(function))
	}
	ctx, span := t.spans.Start(ctx, title, append(how, trace.WithSpanKind(kind), trace.WithAttributes(
		// which samplers may look at
		semconv.RPCSystemNameKey.String(system), method(name), functionKey.Int(int(function)),
	))...)
	if !span.IsRecording() {
		return ctx, span
	}
	if name == "" {
		span.SetAttributes(semconv.RPCMethodOriginal(strconv.Itoa(int(function))))
	}
	switch a := s.Peer().RemoteAddr.(type) {
	case *net.TCPAddr:
		span.SetAttributes(semconv.NetworkPeerAddress(a.IP.String()), semconv.NetworkPeerPort(a.Port))
	case net.Addr:
		span.SetAttributes(semconv.NetworkPeerAddress(a.String()))
	}
	return ctx, span
}

// longestMessage is how many bytes of the text of an error a span keeps: it may come from the peer.
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

// statusCode returns what a code means, or its number if it is one of the application.
func statusCode(c asterisque.Code) string {
	if isOfTheLibrary(c) {
		return c.String()
	}
	return strconv.Itoa(int(c))
}

func isOfTheLibrary(c asterisque.Code) bool { return c > 0 && c <= codec.Stopped }

// outcome returns the attributes of a metric, which have few values whatever the peer does.
func outcome(name string, err error) []attribute.KeyValue {
	if err == nil {
		return []attribute.KeyValue{method(name)}
	}
	return []attribute.KeyValue{method(name), errorType(err)}
}

// class returns what the code of an error means, if it is one of the library.
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

// keepAfterFunc returns inner, which is derived from outer, with outer's AfterFunc: it spares each
// context that a handler derives a goroutine.
func keepAfterFunc(inner, outer context.Context) context.Context {
	if a, ok := outer.(afterFuncer); ok {
		return handlerContext{inner, a}
	}
	return inner
}

// afterFuncer is what package context looks for.
type afterFuncer interface {
	AfterFunc(f func()) (stop func() bool)
}

type handlerContext struct {
	context.Context
	outer afterFuncer
}

// AfterFunc is as context.AfterFunc.
func (c handlerContext) AfterFunc(f func()) (stop func() bool) { return c.outer.AfterFunc(f) }
