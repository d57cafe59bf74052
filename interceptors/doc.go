// Package interceptors has [asterisque.Interceptor] values for common needs: a log, rate limits per
// peer and per function, timeouts, coalescing of equal calls, and retries. It is a module of its
// own, so that the library itself does not need its dependencies:
//
//	node := asterisque.NewNode(
//		asterisque.WithInboundInterceptors(
//			interceptors.Log(slog.Default(), 100),
//			interceptors.RatePerPeer(50, 100),
//			interceptors.Timeout(10*time.Second),
//		),
//		asterisque.WithOutboundInterceptors(interceptors.Timeout(10*time.Second)),
//	)
//
// Each interceptor documents the sides of a call that it supports. It may be put around a node, a
// service, a function, a Caller or a single call: see [asterisque.Interceptor] for the places and
// the order. A call rejected by an outer interceptor never reaches the inner ones. So put a rate
// limit outside of the code that it protects, and a log outside of all interceptors with outcomes
// that it should record.
//
// One interceptor may serve any number of nodes and functions, which then share its counts and
// limits. All are safe for concurrent use. Constructors check their arguments at once, and panic if
// an argument makes no sense.
package interceptors
