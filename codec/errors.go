package codec

// Errors to branch on with errors.Is, which compares codes only. Handlers build their answers of
// them: ErrOverloaded.Withf("try tomorrow"). They must not be changed. The code does not tell
// whether a call may be repeated: ask [Repeatable].
var (
	// ErrCanceled: a caller gave up, or cancelled the context. Nothing to do.
	ErrCanceled = &Abort{Code: Canceled}
	// ErrExpired: the deadline or TTL was over before the result was there. Give it more time, or
	// look at what is slow.
	ErrExpired = &Abort{Code: Expired}
	// ErrNoFunction: the peer does not offer the function. Compare the contracts of both sides.
	ErrNoFunction = &Abort{Code: NoFunction}
	// ErrBadParams: the callee could not decode the parameters, or they would become too much
	// there. Compare the types of both sides. Or the metadata of the call breaks a rule, which the
	// message names.
	ErrBadParams = &Abort{Code: BadParams}
	// ErrBadResult: the result could not be encoded by the callee, or not be decoded by the caller;
	// the call ran. Compare the types of both sides.
	ErrBadResult = &Abort{Code: BadResult}
	// ErrTooLarge: the message exceeds what the peer accepts, or has room for, or the hard limit of
	// its sender. Send less at once, or use a stream.
	ErrTooLarge = &Abort{Code: TooLarge}
	// ErrOverloaded: the peer is at one of its limits. Try again later, at growing intervals.
	ErrOverloaded = &Abort{Code: Overloaded}
	// ErrUnavailable: there is no connection, or the peer takes nothing new. Use another session,
	// or this one later.
	ErrUnavailable = &Abort{Code: Unavailable}
	// ErrPanicked: the handler panicked, or ended its goroutine; the call may have done half its
	// work. The callee's log has the stack.
	ErrPanicked = &Abort{Code: Panicked}
	// ErrProtocol: one side violated the protocol; the session is over. The message says how:
	// report it as a bug.
	ErrProtocol = &Abort{Code: Protocol}
	// ErrSessionClosed: one of the sides closed the session. Open a new one if there is more to do.
	ErrSessionClosed = &Abort{Code: SessionClosed}
	// ErrHardLimit: the session's hard limit was reached and the session cut. Send less, or raise
	// the limit.
	ErrHardLimit = &Abort{Code: HardLimit}
	// ErrStalled: the session stood at its soft limit for too long with nothing consumed, or the
	// reader of a stream gave up waiting for a large Block for which nothing else has room. Look
	// for a handler or a reader of a stream that waits for ever.
	ErrStalled = &Abort{Code: Stalled}
	// ErrHandshake: versions, features or codecs of the two sides do not fit, the peer speaks
	// something else, or the handshake took too long. Trying again does not help against what does
	// not fit.
	ErrHandshake = &Abort{Code: Handshake}
	// ErrWindow: a side sent more than it was granted; the call is over. Report it as a bug.
	ErrWindow = &Abort{Code: WindowViolation}
	// ErrUnauthorized: the peer does not allow it. Use another credential.
	ErrUnauthorized = &Abort{Code: Unauthorized}
	// ErrStopped: the receiver of a stream wants no more of it. Stop sending; this need not be an
	// error.
	ErrStopped = &Abort{Code: Stopped}
)
