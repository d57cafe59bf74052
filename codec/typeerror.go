package codec

import "github.com/asterisque-go/asterisque/internal/truncate"

// TypeError reports a value of the wrong type: Append has no encoding for it, or Decode found a
// value of another type in the bytes than it should store. Its text crosses to the peer, so it is
// in the terms of the codec, and names no Go type. Further information for Go programs is in Err.
type TypeError struct {
	// to the place in the value, ".window.n", "[3]" or `["a key"]`; empty: the whole value, or an
	// unknown place
	Path string
	Want string // expected item: "an integer", "an object"
	Got  string // actual item: "a text string"
	Err  error  // in Go's terms, or nil: it does not cross the wire
}

// Within adds a part with this name, such as ".window" or "[3]", to the front of Path. The
// beginning of a long path is left out.
func (e *TypeError) Within(name string) { e.Path = truncate.Path(name, e.Path) }

// Text returns the place, the expected type and the actual one.
func (e *TypeError) Text() string {
	s := e.Want + " was expected, and " + e.Got + " came"
	if e.Path != "" {
		s = "at " + e.Path + ": " + s
	}
	return s
}

// Error returns the Text, and the text of Err.
func (e *TypeError) Error() string { return withCause(e.Text(), e.Err) }

// Unwrap returns Err.
func (e *TypeError) Unwrap() error { return e.Err }

// ValueError is the reason why a value could not be encoded or decoded, other than its type: the
// bytes are malformed, for example. As with a TypeError, Reason crosses to the peer, and Err does
// not.
type ValueError struct {
	Reason string // in the terms of the codec
	Err    error  // in Go's terms, or nil
}

// Text returns Reason.
func (e *ValueError) Text() string { return e.Reason }

// Error returns the Reason, and the text of Err.
func (e *ValueError) Error() string { return withCause(e.Reason, e.Err) }

// Unwrap returns Err.
func (e *ValueError) Unwrap() error { return e.Err }

func withCause(text string, cause error) string {
	if cause == nil {
		return "asterisque: " + text
	}
	return "asterisque: " + text + ": " + cause.Error()
}
