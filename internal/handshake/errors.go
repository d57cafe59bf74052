package handshake

import (
	"errors"
	"io"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
)

// beyondEOF returns the text of err, unless err only reports the end of the wire.
func beyondEOF(err error) string {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return ""
	}
	return ": " + err.Error()
}

// Transient returns ErrHandshake, which is also ErrTransient, for a cause that may be temporary, so
// that another attempt may succeed.
func Transient(err error, format string, args ...any) *codec.Abort {
	a := codec.ErrHandshake.Withf(format, args...)
	a.Cause = &transientError{a.Message, err}
	return a
}

type transientError struct {
	text string // text of the Abort, which has it once
	err  error
}

func (p *transientError) Error() string        { return p.text }
func (p *transientError) Unwrap() error        { return p.err }
func (p *transientError) Is(target error) bool { return target == ErrTransient }

// ErrTransient is the error, by [errors.Is], of handshakes that may succeed at another attempt.
var ErrTransient = errors.New("this may pass")

// ErrNodeClosed is the error of a handshake at a node that is closed.
var ErrNodeClosed = aborts.NeverSent(codec.ErrUnavailable.Withf("the node is closed"))

var (
	errTooSlow = errors.New("the handshake was not completed in time")
	errTooLate = errors.New("the handshake has been given up")
)

// Exposed returns the error for sessions that cannot be resumed over an address without encryption.
func Exposed(at any) *codec.Abort {
	return codec.ErrUnauthorized.Withf("WithResume: the traffic with %v is not encrypted, and its readers could take sessions over: use tls://, or allow it with Access.PlainCredentials", at)
}
