package asterisque

import (
	"context"
)

// Tracer follows calls from one side to the other, for tracing and for metrics; see [WithTracer].
// The module otel of the repository has one for OpenTelemetry. Its methods, and the functions that
// they return, are called by any goroutine, concurrently, and hold up the call. A panic is logged,
// and the call goes on, without a trace if it was Call or Serve that panicked. If Serve ends its
// goroutine, the call fails with ErrPanicked.
type Tracer interface {
	// Call is told that this side makes a call. trace travels with it, at most 512 bytes, which
	// belong to the session; nil is none. done is called once with the outcome, nil or an *Abort.
	// name is empty for untyped calls.
	Call(ctx context.Context, s *Session, function uint16, name string) (trace []byte, done func(err error))

	// Serve is told that a handler is about to run. trace is what the peer's Call returned, nil if
	// that was nothing; it belongs to the Tracer. The handler gets the returned context, which must
	// be derived from ctx. done is called once with what the handler returned, or as it panicked
	// with ErrPanicked.
	Serve(ctx context.Context, s *Session, function uint16, name string, trace []byte) (handler context.Context, done func(err error))
}
