// Package asterisqueotel shows calls to OpenTelemetry: as spans that belong together on both sides
// of a session, and as metrics. It is a module of its own, so that the library itself needs nothing
// of OpenTelemetry, and its name keeps out of the way of OpenTelemetry's own package otel:
//
//	import asterisqueotel "github.com/asterisque-go/asterisque/otel"
//
//	traced := asterisqueotel.Interceptor()
//	node := asterisque.NewNode(asterisque.WithMadeInterceptors(traced), asterisque.WithServedInterceptors(traced))
//	unregister, err := asterisqueotel.Observe(otel.Meter("my-program"), node)
//
// # Spans
//
// With [Interceptor] each call has a span of kind client where it is made, and one of kind server
// where its handler runs, if both nodes have it. If they trust each other, see below, the span of a
// call that a handler makes with its context is a child of the handler's, on the way back as well:
// a call with a call back is one trace of four spans. A client's span ends with the call, the waits
// before it was sent included; that of a stream with the stream. A call that is refused, or given
// up, before its handler runs has no span on the server's side.
//
// Attributes are those of the semantic conventions for RPC: rpc.system.name is "asterisque",
// rpc.method the name of the function, rpc.response.status_code and error.type what the code of an
// error means, or its number if it is one of the application; network.peer.address and
// network.peer.port tell where the peer is. The number of the function is asterisque.function.
// Functions called without a name, by Session.Call and Session.Open, have "_OTHER" as rpc.method,
// and their number as rpc.method_original.
//
// # Trust
//
// A trace context is what the caller says. Who may say that a call is to be sampled can make this
// side record and send as many spans as there are calls. So it is trusted only from peers that have
// proved who they are: [asterisque.Access].Accept has granted them a Subject, or TLS has verified
// their certificate; [WithTrust] decides otherwise. A call of any other peer begins a new trace,
// which the sampler decides about as if the call had come without a trace context, and whose first
// span has a link to the span of the caller. That is what OpenTelemetry advises for public
// endpoints.
//
// With the trace context goes the baggage, of which a handler has in its context what a trusted
// peer has sent. It goes on with the calls that the handler makes with that context, to whatever
// peer: what is nobody's business does not belong there. That of other peers is ignored.
//
// It holds for both sides of a session. Over a wire without TLS a client does not know its server,
// so that calls back are traces of their own there, unless WithTrust says that all peers are
// trusted.
//
// # Metrics
//
// With [Interceptor] the histograms rpc.client.call.duration and rpc.server.call.duration, in
// seconds, have the attributes rpc.system.name, rpc.method and, of calls that failed, error.type
// and rpc.response.status_code. These two are the metrics that the semantic conventions have for
// RPC, and the boundaries of their buckets are those that the conventions advise. That of a stream
// is its whole life. With [Observe] a node tells what it holds each time the metrics are collected,
// which costs the calls nothing, and with [Hooks] what becomes of its sessions is counted; see
// there for what there is.
//
// Whatever peers do, the number of time series is bounded: by the functions of the program and by
// the codes of the library. No address, id or text of a peer is an attribute of a metric. The codes
// of applications are one: "application".
//
// # On the wire
//
// The trace context of an Open is text: the value of the W3C header traceparent, and if there is a
// tracestate, a line feed and the value of that header. A tracestate that does not fit into the 512
// bytes of an Open loses whole members: first those of more than 128 characters, then the last
// ones. What a peer sends and is not a trace context is ignored.
//
// Baggage is the value of the W3C header baggage, in the metadata of the call under the key
// "baggage". Of the bounds of [asterisque.Metadata] it has what the metadata of the program leaves.
// Baggage that does not fit loses whole members: the largest first, of two of one size the one
// whose text is later. Where the program has said what baggage the call has, that is what travels.
package asterisqueotel
