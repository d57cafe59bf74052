// Package interceptors has [asterisque.Interceptor] values for what many programs want around their
// calls: a log, bounds for how many calls a peer may make, timeouts, calls that are made once where
// several want the same, and calls that are made again. It is a module of its own, so that the
// library itself needs none of what they are made with:
//
//	node := asterisque.NewNode(
//		asterisque.WithServedInterceptors(
//			interceptors.Log(slog.Default(), 100),
//			interceptors.RatePerPeer(50, 100),
//			interceptors.Timeout(10*time.Second),
//		),
//		asterisque.WithMadeInterceptors(interceptors.Timeout(10*time.Second)),
//	)
//
// Each says which sides of a call it is for. They may be put around a node, a service, a function,
// a Caller or a single call: see [asterisque.Interceptor] for where, and in which order. What is
// refused by one that stands outside costs those within nothing, so that a bound stands outside of
// what it protects, and a log outside of all whose outcome it is to tell.
//
// One interceptor may serve any number of nodes and functions, which share its counts and bounds
// then. All are safe for concurrent use. What they are given is checked at once: they panic where
// it makes no sense.
package interceptors
