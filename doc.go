// Package asterisque lets two programs hold one connection over which both call functions of the
// other, thousands at once, each call with a two-way stream beside it if it wants one.
//
// Functions are declared once, as Go values with types, in a package that both programs import.
// Nothing is generated:
//
//	var Greet = asterisque.Func[string, string](10, "greet")
//
//	Greet.Handle(service, func(ctx context.Context, name string) (string, error) { … }) // on one side
//	greeting, err := Greet.Call(ctx, session, "asterisk")                               // on the other
//
// # The nouns
//
// A [Node] is a program's endpoint: the functions it offers and the sessions it holds. It dials and
// listens.
//
// A [wire.Wire] is the transport below a session, and carries whole frames in order: TCP, TLS, Unix
// sockets and in-process wires are there, any net.Conn becomes one by [wire.FromConn], and others
// plug in.
//
// A [Session] is the conversation of two nodes over one Wire. Once it has begun, both sides have
// the same rights, whichever of them dialled.
//
// A [Function] is called with parameters and returns a result; a [StreamFunction] carries values
// both ways while it runs. Their numbers are what crosses the wire: yours are 0 to 65279, those
// above belong to standard functions such as [Describe] and [CheckHealth].
//
// A [Service] is a set of functions that a node offers, to all its peers or to one. It is complete
// before it is served. A handler finds the session that it is called on with [SessionOf], and calls
// back.
//
// A [Pipe] is one side of a running call that carries a stream; a [pipe.Pipe] is the same without
// types.
//
// Open, Block, Close and Control are the only messages: a pipe is born by an Open, carries Blocks
// both ways, and dies by a Close; Controls speak about the session. The [specification] describes
// them for other languages.
//
// # Concurrency
//
// Nodes, sessions, services, functions and pipes may be used by any number of goroutines at the
// same time. Every handler runs on a goroutine of its own, at most [Workers].Session of them at
// once for each session and [Workers].Node for all, and calls wait, by priority and arrival, for
// one to be free. So a handler may block, and it may call back with its context, and so on, 64
// deep: a call within a call waits for no worker, but is lent one, up to 32 for each worker and at
// least 256. Beyond that it fails with ErrOverloaded, instead of standing still. A handler that
// calls back with another context, and waits, may wait in a circle with its like on the other side,
// until their deadlines. A function may run fewer calls at once ([WithConcurrency]), those of one
// key one after the other ([WithKey]), or, if it is short, on the goroutine that reads the session
// ([WithInline]).
//
// What a handler gets as parameters, and a caller as result, is theirs. Who handles large ones as
// bytes may spare the memory: see [WithBorrowedParams] and [WithResultBuffer].
//
// Blocks of one direction of a pipe arrive in the order in which they were sent. Between calls
// there is no order: whoever needs one waits for the first result, or serves with WithKey, or with
// one worker. What leaves a session goes by [WithPriority]: the higher first, in turn among equals,
// with a share for the lower ([Priorities].LowerShare).
//
// # Metadata
//
// What is neither parameter nor result, such as an id of the request, the language of the user or a
// token, travels with the call as [Metadata]: a caller sets it with [WithMetadata], or with
// [ContextWithMetadata] for all calls of a context, and a handler reads it with [MetadataOf]. What
// a handler was called with is not passed on to the calls that it makes.
//
// # Overload
//
// What cannot run yet waits, and what waits is bounded, so that a peer that asks for too much waits
// on its own side. [Workers].Waiting refuses instead what would wait too long, the least urgent
// first, with ErrOverloaded and an advice when to come back ([RetryAfter]); [Retry] heeds it.
// [WithCallWindow] bounds on the caller's side how many calls of one function are outstanding.
//
// # Lost wires
//
// A side that has nothing to say sends a Ping from time to time, and a peer that is silent for too
// long is given up ([Timeouts].Ping). A [Session] ends with its Wire, unless both nodes have
// [WithResume]; then it waits for another one and goes on, with nothing lost, doubled or reordered.
// A [Connection], which [Node.Connect] returns, is what dials again; calls are made on it as on a
// Session. A call that has to get through, even if the session cannot go on, is made with
// [WithDurable].
//
// # Who may
//
// The accepting side decides for each peer what it is offered, and how much ([Access].Accept,
// [Grant]), by its TLS certificate ([Peer.Certificate]) or by a credential ([Access].Credential),
// before it can call anything. Standard functions may be for some of them only ([WithGrantOnly]).
// What peers cost until then is bounded ([Timeouts].Handshake, [Admission].HalfOpen,
// [Admission].Sessions, [Admission].PerAddress).
//
// # What is going on
//
// [Session.Stats], [Node.Stats] and [Service.Stats] count, also as JSON for expvar and for
// log/slog; [Session.Pipes] lists what runs. Package debugpage shows all that over HTTP, module
// otel hands it to OpenTelemetry, [WithHooks] tells what becomes of sessions, and interceptors
// ([WithMadeInterceptors], [WithServedInterceptors]) follow calls.
//
// A peer that calls [CheckHealth] learns whether the program and its parts can do their work, and
// with [WatchHealth] as soon as that changes, if the service chose so ([Service.Health]). Package
// healthpage tells the same over HTTP, to what starts and stops programs.
//
// A peer that calls [Describe] learns which functions a service has, if that chose so
// ([Service.Describe]), and their JSON Schemas, which module schema makes of the Go types.
//
// # Around a call
//
// An [Interceptor] stands around calls, made or served, typed or not: it sees what a [Call]
// carries, may change it, answer it, call on again, and stand around the Blocks of a stream. What
// calls are made on is a [Caller], which programs implement for wrappers, choices and fakes;
// package asterisquetest has what their tests need.
//
// # Cancellation and deadlines
//
// What may wait for long takes a context, which ends the wait. One that is called start governs
// only that: what Dial, Attach and Accept return goes on without it. One that is called life
// governs what is begun, for as long as that lasts: a [Connection], what Serve listens at, the call
// of a Pipe. When the context of a call ends, the call is aborted on both sides, and the handler's
// context ends. A deadline travels with the call as time that is left, so clocks need not agree;
// [WithTTL] sets one without a context. A call whose time is up before its handler has begun never
// runs it.
//
// The handler's context also ends with the session, and when the handler returns. A handler that
// ignores its context goes on and keeps its worker.
//
// [Session.Shutdown] and [Node.Shutdown] end in good order: new calls are refused, those that run
// finish. A handler that would run for ever learns of it by [Draining]. What still runs after 30
// seconds is cut, with ErrUnavailable ([Timeouts].Drain); [Hooks].Shutdown tells meanwhile how much
// that is. Close ends at once. Calls that the side which goes away has not taken are [Repeatable].
// Who takes its place may have its socket: see [wire.Inherited], [wire.ListenerFile] and
// [WithReusePort].
//
// # Limits
//
// A peer is promised no more than there is room for: the inbound soft limit ([Limits].Inbound) is
// divided into room for calls that wait for a worker, for calls within calls, and for the Blocks of
// streams, each of which has a window that grows with its use ([Limits].Window). Beyond that, calls
// and Blocks wait at their sender, and other pipes go on. What running calls hold, parameters and
// answers that wait to be sent, may be as much once more. What is sent waits, by priority, at the
// outbound soft limit ([Limits].Outbound), answers included.
//
// What encoded values become in memory is estimated before they are decoded, and bounded
// ([Limits].Expansion). It counts as what running calls hold.
//
// A peer that sends more than it was promised, or that was promised nothing because there are no
// windows, meets two walls: at its inbound soft limit a session stops reading its Wire, and beyond
// a hard limit it ends with ErrHardLimit and gives its memory back, as it does if a program posts
// without looking. Every message counts what it takes to keep it, so that small ones cannot hide.
// The page [about limits] tells all this at length, and how much memory a session needs at most.
//
// [Hooks].LimitChanged tells when a limit is reached, [Session.Stats] what is promised, what is
// held and who waits for room; [Session.SetLimits] moves the limits, and [Session.Pause] stops
// reading. A session that stands at its inbound soft limit, and from which nothing is taken for the
// time of [Timeouts].Stall, ends with ErrStalled.
//
// # What may be dropped
//
// Only what the application said may be: a call or a Block whose time to live is over ([WithTTL],
// [pipe.WithTTL]), and under pressure, a window that is used up included, a part of the Blocks with
// a loss rate ([WithLoss], [pipe.WithLoss]). The receiver learns from [pipe.Block], and
// [Pipe.Skipped], how many are missing, the sender from [Hooks].Dropped which were dropped, and
// why.
//
// A message that can never get through is refused where it is sent, with ErrTooLarge, and the
// session goes on: one that is larger than the peer accepts ([Limits].MaxMessage), that costs more
// than all the room which the peer has for calls, or that exceeds the outbound hard limit by
// itself.
//
// # Errors
//
// A call, pipe or session that ends without a result ends with an *[Abort]: a code, a message for
// people, detail for programs, and whether the peer said it. Compare with errors.Is and the values
// below, on either side of the wire. [Repeatable] tells of each error whether the call certainly
// did not run, so that to make it again is safe; the last column is what it says of errors that
// come from the library itself:
//
//	error             what happened                                        repeat the call?
//	ErrCanceled       the caller gave up; is also context.Canceled         ask Repeatable
//	ErrExpired        time was up; is also context.DeadlineExceeded        ask Repeatable
//	ErrNoFunction     the peer does not offer that function                safe; elsewhere
//	ErrBadParams      the parameters do not fit the function's type, or    safe, and in vain
//	                  would become too much (Limits.Expansion); or it has
//	                  metadata that it must not have
//	ErrBadResult      a result or a value of a stream does not fit, or     no: it may have run
//	                  would become too much; what a handler receives so
//	                  is ErrBadParams, and has run
//	ErrTooLarge       a message exceeds the peer's limit, or this side's   ask Repeatable; send less
//	ErrOverloaded     too much waits or runs, or a window is full (Post)   ask Repeatable, and
//	                                                                       RetryAfter how soon
//	ErrUnavailable    a side shuts down, is lost, or did not come back     ask Repeatable
//	ErrUnauthorized   the peer does not let this side in                   safe, and in vain
//	ErrHandshake      the peer speaks something else, or too slowly        safe: nothing was called
//	ErrPanicked       the handler panicked; the callee's log says where;   ask Repeatable
//	                  or what encodes or decodes a value did
//	ErrProtocol       a side broke the protocol, and the session ended     ask Repeatable
//	ErrSessionClosed  the session was closed, or its Wire failed           ask Repeatable
//	ErrHardLimit      the session went beyond its hard limit, and ended    ask Repeatable
//	ErrStalled        nothing was taken, at the soft limit or by a reader  ask Repeatable
//	ErrStopped        the peer wants no more of a stream, only             no: the call goes on
//	ErrWindow         a side sent more than was granted                    ask Repeatable
//	ErrPipeClosed     the call of this pipe or stream has ended well       no need
//	ErrEnded          this side has ended its stream, by CloseSend         no need
//
// A handler may return any of these values, or an Abort with a code of the application's, from 1000
// on. Whatever it returns, its call has run, and is not Repeatable, with ErrOverloaded neither.
// What refuses calls before anything is done is an interceptor, by [Call.Refuse]: of such a call
// Repeatable is true. Any other error of a handler reaches the caller with code Failed and its
// text: texts that are nobody else's business stay with [WithPrivateErrors]. So does the text of an
// error of [Access].Accept.
//
// # Callbacks
//
// No panic leaves the library, and no callback costs more than what it was called for, whether it
// panics, ends its goroutine ([runtime.Goexit]), blocks, or closes the session or the node. The log
// says of each panic where it was. Handlers, and what encodes and decodes values, fail their call
// with ErrPanicked; [Access].Accept and [Access].Credential fail their handshake with
// ErrUnavailable; a [Repository] costs the resume; what only observes costs nothing. Only who ends
// the goroutine that reads a session, an inline handler or a function of [WithKey], ends that
// session with it.
//
// [specification]: https://github.com/asterisque-go/asterisque/blob/main/spec/protocol.md
// [about limits]: https://github.com/asterisque-go/asterisque/blob/main/docs/limits.md
package asterisque
