// Package asterisque implements two-way RPC and streaming over one connection. Two programs hold
// one session, and both sides call functions of the other, thousands at once. Each call can carry a
// two-way stream.
//
// Functions are declared once, as typed Go values, in a package that both programs import. No code
// is generated:
//
//	var Greet = asterisque.Func[string, string](10, "greet")
//
//	Greet.Handle(service, func(ctx context.Context, name string) (string, error) { … }) // on one side
//	greeting, err := Greet.Call(ctx, session, "asterisk")                               // on the other
//
// # Concepts
//
// A [Node] is the endpoint of a program: the functions that the program offers and the sessions
// that it holds. A Node dials and listens.
//
// A [wire.Wire] is the transport below a session and carries whole frames in order. The library has
// Wires for TCP, TLS, Unix sockets and connections within a process. [wire.FromConn] makes a Wire
// of any net.Conn, and further transports can be plugged in.
//
// A [Session] is the conversation of two nodes over one Wire. Once the session has begun, both
// sides have the same rights, whichever side dialled.
//
// A [Function] is called with parameters and returns a result. A [StreamFunction] also carries
// values both ways while it runs. Functions are identified on the wire by their numbers: 0 to 65279
// are free for applications, higher ones belong to standard functions such as [Describe] and
// [CheckHealth].
//
// A [Service] is a set of functions that a node offers to all its peers or to one. Functions are
// registered before the Service is served. A handler finds the session of its call with
// [SessionOf], and can call back on it.
//
// A [Pipe] is one side of a running call that carries a stream. A [pipe.Pipe] is the same without
// types.
//
// The protocol has four messages: Open, Block, Close and Control. An Open begins a pipe, Blocks
// carry values both ways, and a Close ends the pipe. Controls concern the whole session. The
// [specification] describes all of them for other languages.
//
// # Concurrency
//
// Nodes, sessions, services, functions and pipes are safe for concurrent use. Each handler runs on
// a goroutine of its own: at most [Workers].Session at once for each session and [Workers].Node for
// the node. Further calls wait for a worker, by priority and arrival.
//
// A handler may block, and it may call back with its context, nested up to 64 deep. Such a nested
// call does not wait for a worker but borrows one: up to 32 for each worker, and at least 256.
// Beyond that the nested call fails with ErrOverloaded instead of a deadlock. Handlers on both
// sides that call back with another context, and wait, can wait for each other until their
// deadlines.
//
// A function may run fewer calls at once ([WithConcurrency]), the calls of one key one after the
// other ([WithKey]), or, if it is short, on the goroutine that reads the session ([WithInline]).
//
// Handlers own the parameters that they receive, and callers own the result.
//
// Blocks of one direction of a pipe arrive in the order in which they were sent. Calls are not
// ordered among each other: an application that needs an order waits for the first result, or
// serves with WithKey or with one worker. Messages leave a session by [WithPriority]: higher
// priorities first, in turn among equals, with a share for lower ones ([Priorities].LowerShare).
//
// # Performance
//
// Handlers and callers that process large byte slices can save memory with [WithBorrowedParams] and
// [WithResultBuffer]. WithInline saves a short handler the switch to another goroutine.
//
// # Metadata
//
// [Metadata] travels with a call beside its parameters: the id of a request, the language of a
// user, a token. A caller sets it with [WithMetadata], or with [ContextWithMetadata] for all calls
// of a context. A handler reads it with [MetadataOf]. Metadata of a call is not passed on to the
// calls that its handler makes.
//
// # Overload
//
// Calls that cannot run yet wait, and the waiting calls are bounded, so that a peer with too many
// calls waits on its own side. With [Workers].Waiting the node rejects calls that would wait too
// long, the least urgent first, with ErrOverloaded and an advised delay ([RetryAfter]). [Retry]
// respects that delay. [WithMaxOutstanding] bounds on the caller's side how many calls of one
// function are outstanding.
//
// # Reconnecting
//
// Idle sessions send keepalive Pings, and a peer that is silent for too long is considered lost
// ([Timeouts].Ping). A [Session] ends with its Wire, unless both nodes use [WithResume]. Then the
// session waits for another Wire and resumes: no message is lost, duplicated or reordered. A
// [Connection], returned by [Node.Connect], dials again; calls are made on it as on a Session. A
// call made with [WithDurable] also survives the end of the session.
//
// # Access control
//
// The accepting side decides for each peer which functions it offers and which limits hold
// ([Access].Accept, [Grant]), by the peer's TLS certificate ([Peer.Certificate]) or by a credential
// ([Access].Credential). It decides before the peer can call anything. [WithGrantOnly] restricts
// standard functions to some peers. The cost of a peer until then is bounded ([Timeouts].Handshake,
// [Admission].HalfOpen, [Admission].Sessions, [Admission].PerAddress).
//
// # Observability
//
// [Session.Stats], [Node.Stats] and [Service.Stats] return counters, also as JSON for expvar and
// for log/slog. [Session.Pipes] lists running calls. Package debugpage shows all of them over HTTP,
// and module otel exports them to OpenTelemetry. [WithHooks] reports changes of sessions, and
// interceptors ([WithOutboundInterceptors], [WithInboundInterceptors]) follow calls.
//
// [CheckHealth] reports to a peer whether the program and its parts can do their work, and
// [WatchHealth] reports each change, if the service offers them ([Service.Health]). Package
// healthpage serves the same states over HTTP, for supervisors of processes.
//
// [Describe] returns the functions of a service to a peer, if the service offers that
// ([Service.Describe]), with the JSON Schemas that module schema derives from the Go types.
//
// # Interceptors
//
// An [Interceptor] wraps outbound or inbound calls, with or without a stream. It sees the content
// of a [Call], may change it, answer it, repeat it, and wrap the Blocks of its stream. Calls are
// made on a [Caller]. Programs implement Caller for wrappers, load balancers and fakes; package
// asterisquetest helps with their tests.
//
// # Cancellation and deadlines
//
// Operations that may block for long take a context, and the end of the context ends the wait. A
// context named start governs only the operation itself: the result of Dial, Attach or Accept
// outlives it. A context named life governs the returned object for as long as that exists: a
// [Connection], the listeners of Serve, the call of a Pipe.
//
// When the context of a call ends, the call is aborted on both sides, and the handler's context
// ends. A deadline travels with the call as the time that is left, so clocks need not agree.
// [WithTTL] sets a deadline without a context. A call that expires before its handler begins never
// runs.
//
// The handler's context also ends with the session, and when the handler returns. A handler that
// ignores its context keeps running and keeps its worker.
//
// # Graceful shutdown
//
// [Session.Shutdown] and [Node.Shutdown] reject new calls and wait for running ones. A handler that
// would run forever uses [Draining] to notice the shutdown. Calls that still run after 30 seconds
// are cut with ErrUnavailable ([Timeouts].Drain). [Hooks].Shutdown reports the progress. Close ends
// everything at once. Calls that the closing side has not accepted are [Repeatable]. A successor
// process can inherit or share the listening socket: see [wire.Inherited], [wire.ListenerFile] and
// [WithReusePort].
//
// # Limits
//
// A peer is granted no more than the reserved budget. The inbound soft limit ([Limits].Inbound) is
// divided into three budgets: for calls that wait for a worker, for nested calls, and for the
// Blocks of streams. Each stream has a window that grows with its use ([Limits].Window). Beyond its
// grant, a call or a Block waits at its sender, and other pipes are not affected. Running calls,
// with their parameters and with answers that wait to be sent, may hold the same amount once more.
// Outbound messages, answers included, wait by priority at the outbound soft limit
// ([Limits].Outbound).
//
// The size in memory of an encoded value is estimated and bounded before the value is decoded
// ([Limits].Expansion). It counts as memory of running calls.
//
// Two marks stop a peer that exceeds its grant, or that has none because the session uses no
// windows. At the inbound soft limit the session stops reading its Wire. Beyond the hard limit it
// ends with ErrHardLimit and releases its memory. A session also ends so if its application posts
// without regard to the outbound limit. Each message counts with the memory that it occupies, so
// small messages cannot evade the limits. The page [about limits] has the details, and the most
// memory that a session needs.
//
// [Hooks].LimitChanged reports when a limit is reached. [Session.Stats] has the granted and the
// used amounts, and the number of waiters. [Session.SetLimits] changes the limits, and
// [Session.StopReading] stops reading. A session ends with ErrStalled if it stays at its inbound
// soft limit for [Timeouts].Stall without the application taking a message.
//
// # Expiry and loss
//
// The library drops only messages that the application has marked: calls and Blocks with an expired
// time to live ([WithTTL], [pipe.WithTTL]), and, under pressure or with an exhausted window, a part
// of the Blocks that have a loss rate ([WithLoss], [pipe.WithLoss]). [pipe.Block] and
// [Pipe.Skipped] report to the receiver how many Blocks are missing. [Hooks].Dropped reports to the
// sender each dropped message and the reason.
//
// A message that can never be delivered is rejected at its sender with ErrTooLarge, and the session
// continues. Such a message is larger than the peer accepts ([Limits].MaxMessage), costs more than
// the whole budget that the peer has for calls, or exceeds the outbound hard limit alone.
//
// # Errors
//
// A call, pipe or session that ends without a result ends with an *[Abort]: a code, a message for
// people, detail for programs, and whether the peer sent it. Compare with errors.Is and the values
// below, on either side of the wire. [Repeatable] reports whether the failed call certainly did not
// run, so that repeating it is safe. The last column has its result for errors of the library
// itself:
//
//	error             cause                                                repeat the call?
//	ErrCanceled       the caller canceled; is also context.Canceled        ask Repeatable
//	ErrExpired        deadline exceeded; is also context.DeadlineExceeded  ask Repeatable
//	ErrNoFunction     the peer does not offer that function                safe; elsewhere
//	ErrBadParams      the parameters do not match the function's type, or  safe, and in vain
//	                  exceed Limits.Expansion; or the metadata is invalid
//	ErrBadResult      a result or a value of a stream does not match its   no: it may have run
//	                  type, or exceeds Limits.Expansion; a value received
//	                  by a handler gives ErrBadParams: the call has run
//	ErrTooLarge       a message exceeds the peer's limit, or this side's   ask Repeatable; send less
//	ErrOverloaded     too many calls wait or run, or a window is full      ask Repeatable, and
//	                  (Post)                                               RetryAfter how soon
//	ErrUnavailable    a side shuts down, is lost, or did not come back     ask Repeatable
//	ErrUnauthorized   the peer does not admit this side                    safe, and in vain
//	ErrHandshake      the peer has another protocol, or is too slow        safe: no call was made
//	ErrPanicked       the handler, or the encoding or decoding of a value  ask Repeatable
//	                  panicked; the callee's log says where
//	ErrProtocol       a side broke the protocol, and the session ended     ask Repeatable
//	ErrSessionClosed  the session was closed, or its Wire failed           ask Repeatable
//	ErrHardLimit      the session exceeded its hard limit, and ended       ask Repeatable
//	ErrStalled        the application, or a reader, took no message        ask Repeatable
//	ErrStopped        the peer stopped receiving a stream, only            no: the call continues
//	ErrWindow         a side sent more than was granted                    ask Repeatable
//	ErrPipeClosed     the call of this pipe or stream has succeeded        no need
//	ErrEnded          this side has ended its stream, by CloseSend         no need
//
// A handler may return any of these values, or an Abort with a code of the application, from 1000
// on. After its handler has returned, a call has run and is never Repeatable, not even with
// ErrOverloaded. An interceptor rejects calls before they run, by [Call.Refuse]; those are
// Repeatable. Any other error of a handler reaches the caller with code Failed and its text.
// [WithPrivateErrors] keeps such texts from peers. The text of an error of [Access].Accept is
// always kept from them.
//
// # Callbacks
//
// No panic leaves the library. A callback that panics, ends its goroutine ([runtime.Goexit]),
// blocks, or closes the session or the node affects only the operation that called it. The log has
// the location of each panic. Handlers, and the encoding and decoding of values, fail their call
// with ErrPanicked. [Access].Accept and [Access].Credential fail their handshake with
// ErrUnavailable. A [Repository] fails the resume. Callbacks that only observe fail nothing. There
// is one exception: an inline handler, or a function of [WithKey], runs on the goroutine that reads
// the session, and ends the session if it ends that goroutine.
//
// [specification]: https://github.com/asterisque-go/asterisque/blob/main/spec/protocol.md
// [about limits]: https://github.com/asterisque-go/asterisque/blob/main/docs/limits.md
package asterisque
