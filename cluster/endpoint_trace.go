package cluster

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
)

const (
	mostTrace  = 512 // bytes that a call carries
	mostParent = 128
)

// traceOf returns the trace context of a request as a call carries it: a traceparent of W3C Trace
// Context, and after a line feed the tracestate, if that fits. nil: there is none. It is not read:
// whoever uses it has to do that anyway.
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

// header returns the value of a header, which has several spellings: those of NATS keep their case,
// and libraries that know HTTP write it as HTTP does.
func header(h nats.Header, spellings ...string) string {
	for _, s := range spellings {
		if v := h.Get(s); v != "" {
			return v
		}
	}
	return ""
}

// traced lets a trace context travel with a call.
func traced(trace []byte) asterisque.Interceptor {
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if err := c.SetTrace(trace); err != nil {
			return err
		}
		return next(ctx, c)
	}
}
