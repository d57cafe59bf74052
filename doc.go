// Package asterisque lets two programs hold one connection over which both call functions of the other, thousands at once, each call with a two-way
// stream beside it if it wants one.
//
// Functions are declared once, as Go values with types, in a package that both programs import. Nothing is generated:
//
//	var Greet = asterisque.Func[string, string](10, "greet")
//
//	Greet.Handle(service, func(ctx context.Context, name string) (string, error) { … }) // on one side
//	greeting, err := Greet.Call(ctx, session, "asterisk")                               // on the other
//
// # The nouns
//
// A [Node] is a program's endpoint: the functions it offers and the sessions it holds. It dials and listens.
//
// A [wire.Wire] is the transport below a session, and carries whole frames in order: TCP, TLS, Unix sockets and in-process wires are there, any net.Conn becomes
// one by [wire.FromConn], and others plug in.
//
// A [Session] is the conversation of two nodes over one Wire. Once it has begun, both sides have the same rights, whichever of them dialled.
//
// A [Function] is called with parameters and returns a result; a [StreamFunction] carries values both ways while it runs. Their numbers, 0 to 65535, are what
// crosses the wire.
//
// A [Service] is a set of functions that a node offers, to all its peers or to one. A handler finds the session that it is called on with [SessionOf], and calls back.
//
// A [Pipe] is one side of a running call that carries a stream; a [pipe.Pipe] is the same without types.
//
// Open, Block, Close and Control are the only messages: a pipe is born by an Open, carries Blocks both ways, and dies by a Close; Controls speak about the session.
// The folder spec of the repository describes them for other languages.
//
// # Concurrency
//
// Nodes, sessions, services, functions and pipes may be used by any number of goroutines at the same time. Every handler runs on a goroutine of its own, at most
// [WithWorkers] of them at once for each session and [WithNodeWorkers] for all, and calls wait, by priority and arrival, for one to be free. So a handler may block, and it may call
// back, as deep as it likes: a call that is made within a call back needs no worker of its own. Only chains of calls that begin on both sides may wait for each other's last workers, until their
// deadlines. A function may run fewer calls at once ([WithConcurrency]), those of one key one after the
// other ([WithKey]), or, if it is short, on the goroutine that reads the session ([WithInline]).
//
// What a handler gets as parameters, and a caller as result, is theirs. Who handles large ones as bytes may spare the memory: see [WithBorrowedParams] and [WithResultBuffer].
//
// Blocks of one direction of a pipe arrive in the order in which they were sent. Between calls there is no order: whoever needs one waits for the first result, or
// serves with WithKey, or with WithWorkers(1). What leaves a session goes by [WithPriority]: the higher first, in turn among equals, with a share for the lower ([WithLowerShare]).
//
// # Overload
//
// What cannot run yet waits, and what waits is bounded, so that a peer that asks for too much is held up. [WithMaxWaiting] refuses instead what would wait too long, the least urgent first, with
// ErrOverloaded and an advice when to come back ([RetryAfter]); [Retry] heeds it. [WithCallWindow] bounds on the caller's side how many calls of one function are outstanding.
//
// # Lost wires
//
// A side that has nothing to say sends a Ping from time to time, and a peer that is silent for too long is given up ([WithPing]). A [Session] ends with its Wire, unless both nodes have
// [WithResume]; then it waits for another one and goes on, with nothing lost, doubled or reordered. A [Connection], which [Node.Connect] returns, is what dials again; calls are made on it as on
// a Session. A call that has to get through, even if the session cannot go on, is made with [WithDurable].
//
// # Who may
//
// The accepting side decides for each peer what it is offered, and how much ([WithAccept], [Grant]), by its TLS certificate ([Peer.Certificate]) or by a credential ([WithCredential]), before it
// can call anything. What peers cost until then is bounded ([WithHandshakeTimeout], [WithHalfOpen], [WithSessionsPerAddress]).
//
// # What is going on
//
// [Session.Stats], [Node.Stats] and [Service.Stats] count, also as JSON for expvar and for log/slog; [Session.Pipes] lists what runs. Package debugpage shows all that over HTTP, module otel hands it to
// OpenTelemetry, and [WithTracer] follows calls.
//
// # Cancellation and deadlines
//
// What may wait for long takes a context, which ends the wait. The context of a call, and the one given to Open, governs the call itself: when it ends, the call
// is aborted on both sides, and the handler's context ends. A deadline travels with the call as time that is left, so clocks need not agree; [WithTTL] sets one
// without a context. A call whose time is up before its handler has begun never runs it.
//
// The handler's context also ends with the session, and when the handler returns. A handler that ignores its context goes on and keeps its worker.
//
// [Session.Shutdown] and [Node.Shutdown] end in good order: new calls are refused, those that run finish. Close ends at once. Calls that the side
// which goes away has not taken are [Repeatable].
//
// # Limits
//
// What waits is bounded in three steps. Windows come first: each direction of a pipe has one, in bytes ([WithWindow]), and each direction of a session has one for
// calls ([WithOpensWindow]). A sender waits until the receiving application has taken what came before, and other pipes go on. Next, each direction of a session
// has a soft limit for all that waits in it ([WithInboundLimits], [WithOutboundLimits]): at the inbound one the session stops reading its Wire, at the outbound one
// senders wait, handlers not yet begun among them. Beyond the hard limit, which takes a peer that ignores windows or a program that posts without looking, the
// session ends with ErrHardLimit and gives its memory back. Every message counts its payload and [limits.Overhead] bytes, so that small ones cannot hide.
//
// [WithOnState] tells when a limit is reached, [Session.Stats] how much waits; [Session.SetLimits] moves the limits, and [Session.Pause] stops reading. A session
// that stands at its inbound soft limit, and from which nothing is taken for the time of [WithStallTimeout], ends with ErrStalled.
//
// # What may be dropped
//
// Only what the application said may be: a call or a Block whose time to live is over ([WithTTL], [pipe.WithTTL]), and under pressure a part of the Blocks with a
// loss rate ([WithLoss], [pipe.WithLoss]). The receiver learns from [pipe.Block], and [Pipe.Skipped], how many are missing, the sender from [WithDropReports] which were
// dropped, and why.
//
// A message larger than the peer accepts ([WithMaxMessage]) is refused where it is sent, with ErrTooLarge; the session goes on.
//
// # Errors
//
// A call, pipe or session that ends without a result ends with an *[Abort]: a code, a message for people, detail for programs, and whether the peer said it. Compare
// with errors.Is and the values below, on either side of the wire. [Repeatable] tells of each error whether the call certainly did not run, so that to make it again
// is safe; the last column is what it says of errors that come from the library itself:
//
//	error             what happened                                        repeat the call?
//	ErrCanceled       the caller gave up; is also context.Canceled         ask Repeatable
//	ErrExpired        time was up; is also context.DeadlineExceeded        ask Repeatable
//	ErrNoFunction     the peer does not offer that function                safe; elsewhere
//	ErrBadParams      the parameters do not fit the function's type        safe, and in vain
//	ErrBadResult      a result or a value of a stream does not fit         no: it may have run
//	ErrTooLarge       parameters or a result exceed the peer's limit       ask Repeatable; send less
//	ErrOverloaded     too much waits, or a window is used up (Post)        safe; after RetryAfter
//	ErrUnavailable    a side shuts down, is lost, or did not come back     ask Repeatable
//	ErrUnauthorized   the peer does not let this side in                   safe, and in vain
//	ErrHandshake      the peer speaks something else, or too slowly        safe: nothing was called
//	ErrPanicked       the handler panicked; the callee's log says where    no: it ran
//	ErrProtocol       a side broke the protocol, and the session ended     ask Repeatable
//	ErrSessionClosed  the session was closed, or its Wire failed           ask Repeatable
//	ErrHardLimit      the session went beyond its hard limit, and ended    ask Repeatable
//	ErrStalled        nothing was taken at the soft limit for too long     ask Repeatable
//	ErrStopped        the peer wants no more of a stream, only       no: the call goes on
//	ErrWindow         a side sent more than was granted                    ask Repeatable
//	ErrPipeClosed     the call of this pipe or stream has ended well       no need
//
// ErrDropped has its code in the protocol; the library itself does not return it yet. A handler may return any of these values, or
// an Abort with a code of the application's, from 1000 on. Any other error of a handler reaches the caller with code Failed and its text.
//
// No panic leaves the library, and a handler's panic fails its own call only.
package asterisque
