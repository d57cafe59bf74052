package codec

import "strconv"

// Code is the reason of an abort. 1 to 999 belong to the library; from 1000 on, and below 0, to
// applications.
type Code int32

// The library's codes, as in the protocol.
const (
	Failed          Code = 1  // the handler returned an error without a code
	Canceled        Code = 2  // the caller cancelled
	Expired         Code = 3  // the deadline or TTL expired
	NoFunction      Code = 4  // the peer has no such function
	BadParams       Code = 5  // the parameters could not be decoded
	BadResult       Code = 6  // the result could not be encoded or decoded
	TooLarge        Code = 7  // a message is larger than the peer accepts
	Overloaded      Code = 8  // the peer is at one of its limits
	Unavailable     Code = 9  // there is no connection, or the peer shuts down
	Panicked        Code = 10 // the handler panicked
	Protocol        Code = 11 // the protocol was violated
	SessionClosed   Code = 12 // the session was closed
	HardLimit       Code = 13 // the session's hard limit was reached
	Stalled         Code = 14 // the session made no progress for too long
	Dropped         Code = 15 // it was dropped under pressure
	Handshake       Code = 16 // versions, features or codecs do not match, or it took too long
	WindowViolation Code = 17 // more was sent than the window allowed
	Unauthorized    Code = 18 // the peer is not permitted to do that
	Stopped         Code = 19 // the receiver of a stream has stopped reading
)

var codeNames = [...]string{
	Failed:          "failed",
	Canceled:        "canceled",
	Expired:         "expired",
	NoFunction:      "no such function",
	BadParams:       "bad parameters",
	BadResult:       "bad result",
	TooLarge:        "too large",
	Overloaded:      "overloaded",
	Unavailable:     "unavailable",
	Panicked:        "panicked",
	Protocol:        "protocol violated",
	SessionClosed:   "session closed",
	HardLimit:       "hard limit reached",
	Stalled:         "stalled",
	Dropped:         "dropped",
	Handshake:       "handshake failed",
	WindowViolation: "window exceeded",
	Unauthorized:    "unauthorized",
	Stopped:         "stopped",
}

// String returns the meaning of the code, or its number if the library gives it no meaning.
func (c Code) String() string {
	if c > 0 && int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "code " + strconv.Itoa(int(c))
}
