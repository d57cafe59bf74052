package codec

// Errors to branch on with errors.Is, which compares codes only. Handlers derive their own errors
// from them: ErrOverloaded.Withf("try tomorrow"). They must not be changed. The code does not
// determine whether a call may be repeated: use [Repeatable].
var (
	// ErrCanceled: the caller cancelled the call or its context. No action is needed.
	ErrCanceled = &Abort{Code: Canceled}
	// ErrExpired: the deadline or TTL expired before the result arrived. Allow more time, or find
	// the slow part.
	ErrExpired = &Abort{Code: Expired}
	// ErrNoFunction: the peer does not offer the function. Compare the contracts of both sides.
	ErrNoFunction = &Abort{Code: NoFunction}
	// ErrBadParams: the callee could not decode the parameters, or they would take too much memory
	// there. Compare the types of both sides. It also reports metadata of the call that breaks a
	// rule, which the message names.
	ErrBadParams = &Abort{Code: BadParams}
	// ErrBadResult: the result could not be encoded by the callee, or not be decoded by the caller;
	// the call ran. Compare the types of both sides.
	ErrBadResult = &Abort{Code: BadResult}
	// ErrTooLarge: the message exceeds the limits or the free room of the peer, or the hard limit
	// of its sender. Send smaller messages, or use a stream.
	ErrTooLarge = &Abort{Code: TooLarge}
	// ErrOverloaded: the peer is at one of its limits. Retry later, at growing intervals.
	ErrOverloaded = &Abort{Code: Overloaded}
	// ErrUnavailable: there is no connection, or the peer accepts no new calls. Use another
	// session, or this one later.
	ErrUnavailable = &Abort{Code: Unavailable}
	// ErrPanicked: the handler panicked, or ended its goroutine; the call may have run in part. The
	// callee's log has the stack.
	ErrPanicked = &Abort{Code: Panicked}
	// ErrProtocol: one side violated the protocol; the session is over. The message names the
	// violation: report it as a bug.
	ErrProtocol = &Abort{Code: Protocol}
	// ErrSessionClosed: one of the sides closed the session. Open a new one if there is more to do.
	ErrSessionClosed = &Abort{Code: SessionClosed}
	// ErrHardLimit: the session reached its hard limit and was aborted. Send less, or raise the
	// limit.
	ErrHardLimit = &Abort{Code: HardLimit}
	// ErrStalled: the session was at its soft limit for too long without progress, or the reader of
	// a stream gave up waiting for a large Block for which nothing else has room. Look for a
	// handler or a reader of a stream that blocks forever.
	ErrStalled = &Abort{Code: Stalled}
	// ErrHandshake: versions, features or codecs of the two sides do not match, the peer uses
	// another protocol, or the handshake took too long. Retrying does not resolve a mismatch.
	ErrHandshake = &Abort{Code: Handshake}
	// ErrWindow: a side sent more than its window; the call is over. Report it as a bug.
	ErrWindow = &Abort{Code: WindowViolation}
	// ErrUnauthorized: the peer does not permit it. Use another credential.
	ErrUnauthorized = &Abort{Code: Unauthorized}
	// ErrStopped: the receiver of a stream has stopped reading. Stop sending; this need not be an
	// error.
	ErrStopped = &Abort{Code: Stopped}
)
