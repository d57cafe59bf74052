package asterisqueotel

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/asterisque-go/asterisque"
)

// WithTrust sets of which peers the trace context is trusted, and the baggage: the spans of their
// calls belong to the traces that they name, and are sampled as their flag says, if the sampler
// looks at its parent. A call of whom trust refuses begins a trace of its own on this side, without
// baggage; see the package documentation. It is asked for each call that has a trace context or
// baggage, by any goroutine, and must not block. The default trusts peers that have proved who they
// are: [asterisque.Access].Accept has granted them a Subject, or TLS has verified their
// certificate.
func WithTrust(trust func(asterisque.Peer) bool) Option {
	return func(c *config) { c.trust = trust }
}

func proven(p asterisque.Peer) bool { return p.Subject != "" || p.Certificate() != nil }

// parent returns ctx with the trace context and the baggage that came with a call, as far as they
// are trusted, and how the span is to begin.
//
// OpenTelemetry advises a new trace with a link where a caller is not trusted. A parent without the
// sampled flag would not do: the caller would still choose the trace id, by which samplers decide,
// too. The link names the caller's span, without flags and state, for samplers may look at links.
func (t *instrumentation) parent(ctx context.Context, c *asterisque.Call) (context.Context, []trace.SpanStartOption) {
	if trace.SpanContextFromContext(ctx).IsValid() { // of who stands around this one
		return ctx, nil
	}
	inner := unpack(extract(ctx, c.Trace()), c.Metadata(ctx).Text(baggageKey))
	if inner == ctx || t.trust(c.Session().Peer()) {
		return inner, nil
	}
	theirs := trace.SpanContextFromContext(inner)
	if !theirs.IsValid() {
		return ctx, nil
	}
	link := trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: theirs.TraceID(), SpanID: theirs.SpanID(), Remote: true,
	})}
	return ctx, []trace.SpanStartOption{trace.WithNewRoot(), trace.WithLinks(link)}
}
