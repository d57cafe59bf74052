package codec

import "strconv"

// Code says why something was aborted. 1 to 999 belong to the library; from 1000 on, and below 0,
// to applications.
type Code int32

// The library's codes.
const (
	Failed          Code = iota + 1 // the handler returned an error without a code of its own
	Canceled                        // the caller does not want it any more
	Expired                         // its time was up
	NoFunction                      // the peer has no such function
	BadParams                       // the parameters could not be decoded
	BadResult                       // the result could not be encoded or decoded
	TooLarge                        // a message is larger than the peer accepts
	Overloaded                      // the peer has too much to do
	Unavailable                     // there is no connection, or the peer goes away
	Panicked                        // the handler panicked
	Protocol                        // the protocol was violated
	SessionClosed                   // the session was closed
	HardLimit                       // the session's hard limit was reached
	Stalled                         // the session stood still for too long
	Dropped                         // it was dropped under pressure
	Handshake                       // versions, features or codecs do not fit, or it took too long
	WindowViolation                 // more was sent than the window allowed
	Unauthorized                    // the peer may not do that
	Stopped                         // the receiver of a stream wants no more of it
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

// String returns what the code means, or its number if the library gives it no meaning.
func (c Code) String() string {
	if c > 0 && int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "code " + strconv.Itoa(int(c))
}
