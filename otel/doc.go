// Package asterisqueotel exports calls to OpenTelemetry: as spans that are linked across both sides
// of a session, and as metrics. It is a module of its own, so that the library itself does not
// depend on OpenTelemetry. Its name avoids a conflict with OpenTelemetry's own package otel:
//
//	import asterisqueotel "github.com/asterisque-go/asterisque/otel"
//
//	traced := asterisqueotel.Interceptor()
//	node := asterisque.NewNode(asterisque.WithOutboundInterceptors(traced), asterisque.WithInboundInterceptors(traced))
//	unregister, err := asterisqueotel.Observe(otel.Meter("my-program"), node)
//
// # Spans
//
// With [Interceptor] on both nodes, each call has a span of kind client on the calling side and a
// span of kind server on the side that runs its handler. If the nodes trust each other (see below),
// a call that a handler makes with its context has a span that is a child of the handler's span.
// This includes calls back to the peer: a call with a call back is one trace of four spans. A
// client span ends with the call, and includes the waits before the call was sent. The span of a
// stream ends with the stream. A call that is rejected or canceled before its handler runs has no
// server span.
//
// Attributes follow the semantic conventions for RPC. rpc.system.name is "asterisque". rpc.method
// is the name of the function. rpc.response.status_code and error.type are the meaning of the error
// code, or its number if the application defined it. network.peer.address and network.peer.port are
// the address of the peer. asterisque.function is the number of the function. Functions called
// without a name, by Session.Call and Session.Open, have "_OTHER" as rpc.method, and their number
// as rpc.method_original.
//
// # Trust
//
// A trace context is a claim of the caller. A caller that may request sampling can make this side
// record and send as many spans as there are calls. So a trace context is trusted only from peers
// with a proven identity: [asterisque.Access].Accept has set a Subject, or TLS has verified their
// certificate. [WithTrust] replaces this rule. A call of any other peer begins a new trace, with a
// link from its first span to the span of the caller. The sampler decides about the new trace as if
// the call had no trace context. This is what OpenTelemetry advises for public endpoints.
//
// Baggage travels with the trace context. A handler has in its context the baggage that a trusted
// peer has sent. Calls that the handler makes with that context send the baggage on, to any peer,
// so it must not contain secrets. Baggage of peers that are not trusted is ignored.
//
// These rules hold for both sides of a session. Over a wire without TLS a client cannot verify its
// server, so calls back are traces of their own there, unless WithTrust trusts all peers.
//
// # Metrics
//
// With [Interceptor] the histograms rpc.client.call.duration and rpc.server.call.duration, in
// seconds, have the attributes rpc.system.name and rpc.method, and for failed calls error.type and
// rpc.response.status_code. These two are the RPC metrics of the semantic conventions, with the
// advised bucket boundaries. The duration of a stream is its whole life. [Observe] reports the
// state of a node at each collection of the metrics, at no cost for calls. [Hooks] counts session
// events. Both document their metrics.
//
// The number of time series is bounded by the functions of the program and the codes of the
// library. It does not depend on peers: no address, id or text of a peer is an attribute of a
// metric. All codes of applications share the value "application".
//
// # On the wire
//
// The trace context of an Open is text: the value of the W3C header traceparent and, if there is a
// tracestate, a line feed and the value of that header. A tracestate that does not fit into the 512
// bytes of an Open loses whole members: first those of more than 128 characters, then the last
// ones. An invalid trace context from a peer is ignored.
//
// Baggage is the value of the W3C header baggage, in the metadata of the call under the key
// "baggage". It gets the part of the bounds of [asterisque.Metadata] that the metadata of the
// program leaves free. Baggage that does not fit loses whole members: the largest first, and of two
// members of one size the later one in text order. If the program has set the key "baggage" itself,
// that value is sent.
package asterisqueotel
