package asterisqueotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"github.com/asterisque-go/asterisque/codec/message"
)

// The headers of W3C Trace Context.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

var w3c propagation.TraceContext // has no state

// inject returns the trace context of ctx in its wire format, or nil if ctx has none.
func inject(ctx context.Context) []byte {
	headers := propagation.MapCarrier{}
	w3c.Inject(ctx, headers)
	parent := headers[traceparent]
	if parent == "" {
		return nil
	}
	state := fit(headers[tracestate], message.MaxTrace-len(parent)-1)
	if state == "" {
		return []byte(parent)
	}
	return []byte(parent + "\n" + state)
}

// extract returns ctx with the trace context that came with a call, or ctx itself if sent is
// invalid.
func extract(ctx context.Context, sent []byte) context.Context {
	if len(sent) == 0 {
		return ctx
	}
	parent, state, _ := strings.Cut(string(sent), "\n")
	return w3c.Extract(ctx, propagation.MapCarrier{traceparent: parent, tracestate: state})
}

// longMember is the length above which W3C Trace Context removes a member first.
const longMember = 128

// fit returns the members of a tracestate that fit into most bytes.
func fit(state string, most int) string {
	if len(state) <= most {
		return state
	}
	members, size := strings.Split(state, ","), len(state)
	for i := len(members) - 1; i >= 0 && size > most; i-- {
		if len(members[i]) > longMember {
			size -= len(members[i]) + 1
			members = append(members[:i], members[i+1:]...)
		}
	}
	for size > most && len(members) > 0 {
		last := len(members) - 1
		size -= len(members[last]) + 1
		members = members[:last]
	}
	return strings.Join(members, ",")
}
