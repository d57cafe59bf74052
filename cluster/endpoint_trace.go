package cluster

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
)

const (
	mostTrace  = 512 // maximum bytes in a call
	mostParent = 128
)

// traceOf returns the trace context of a request in the format of a call: a traceparent of W3C
// Trace Context, and after a line feed the tracestate, if it fits. nil: there is none. It is not
// validated here, since its consumer does so anyway.
func traceOf(h nats.Header) []byte {
	parent, state := header(h, "traceparent", "Traceparent"), header(h, "tracestate", "Tracestate")
	if parent == "" || len(parent) > mostParent {
		return nil
	}
	if state == "" || len(parent)+1+len(state) > mostTrace {
		return []byte(parent)
	}
	return []byte(parent + "\n" + state)
}

// header returns the value of a header with several spellings: NATS keeps the case of headers, and
// HTTP libraries write them in the case of HTTP.
func header(h nats.Header, spellings ...string) string {
	for _, s := range spellings {
		if v := h.Get(s); v != "" {
			return v
		}
	}
	return ""
}

// traced sets the trace context of a call.
func traced(trace []byte) asterisque.Interceptor {
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if err := c.SetTrace(trace); err != nil {
			return err
		}
		return next(ctx, c)
	}
}
