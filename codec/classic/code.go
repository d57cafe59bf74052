package classic

import "github.com/asterisque-go/asterisque/codec"

// Codes of an Abort with a meaning in the original; all other codes belong to the application.
const (
	Unexpected     = -1 // the function failed, or does not exist
	SessionClosing = -2 // the session ends, or takes no new calls
)

// shifted is the offset of the codes 0..999 of a classic peer, because these belong to the library
// here.
const shifted = -10_000

// Code returns the code in this library for the code of an Abort of a classic peer: codec.Failed
// for Unexpected, codec.SessionClosed for SessionClosing, -10000-n for n in 0..999, and n for every
// other n. So an application compares a code 404 of its peer by err.Code == classic.Code(404), and
// a handler returns it with &codec.Abort{Code: classic.Code(404)}.
func Code(n int32) codec.Code {
	switch {
	case n == Unexpected:
		return codec.Failed
	case n == SessionClosing:
		return codec.SessionClosed
	case n >= 0 && n < 1000:
		return codec.Code(shifted - n)
	}
	return codec.Code(n)
}

// AbortOf returns a in the form that a classic peer receives. The library's own codes become
// Unexpected, or SessionClosing, with their meaning in front of the message; the codes of the
// application are converted by the reverse of Code. Detail cannot be sent, nor whether the call was
// refused.
func AbortOf(a *codec.Abort) *Abort {
	switch c := a.Code; {
	case c == codec.SessionClosed, c == codec.Unavailable:
		return &Abort{Code: SessionClosing, Message: meaning(a)}
	case c == codec.Failed:
		return &Abort{Code: Unexpected, Message: a.Message}
	case c > 0 && c < 1000:
		return &Abort{Code: Unexpected, Message: meaning(a)}
	case c <= shifted && c > shifted-1000:
		return &Abort{Code: int32(shifted - c), Message: a.Message}
	}
	return &Abort{Code: int32(a.Code), Message: a.Message}
}

func meaning(a *codec.Abort) string {
	if a.Message == "" {
		return a.Code.String()
	}
	return a.Code.String() + ": " + a.Message
}
