package asterisqueotel

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/asterisque-go/asterisque"
)

// WithTrust sets the rule for which peers the trace context and the baggage are trusted. The spans
// of their calls belong to the traces that they name, and are sampled as their flag says, if the
// sampler respects its parent. A call of a peer that is not trusted begins a new trace on this
// side, without baggage; see the package documentation. trust is called for each call with a trace
// context or baggage, on any goroutine, and must not block. The default trusts peers with a proven
// identity: [asterisque.Access].Accept has set a Subject, or TLS has verified their certificate.
func WithTrust(trust func(asterisque.Peer) bool) Option {
	return func(c *config) { c.trust = trust }
}

func proven(p asterisque.Peer) bool { return p.Subject != "" || p.Certificate() != nil }

// parent returns ctx with the trace context and the baggage that came with a call, as far as they
// are trusted, and the options with which the span begins.
//
// OpenTelemetry advises a new trace with a link for callers that are not trusted. A parent without
// the sampled flag would not suffice: the caller would still choose the trace id, which samplers
// also use for their decision. The link contains the caller's span without flags and state, because
// samplers may read links.
func (t *instrumentation) parent(ctx context.Context, c *asterisque.Call) (context.Context, []trace.SpanStartOption) {
	if trace.SpanContextFromContext(ctx).IsValid() { // set by an outer interceptor
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
