package asterisque

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

// passing returns ErrHandshake for a cause that may be temporary, so that another attempt may
// succeed.
func passing(err error, format string, args ...any) *Abort {
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
func (p *transientError) Is(target error) bool { return target == errPassing }

var errPassing = errors.New("this may pass")

var errNodeClosed = aborts.NeverSent(codec.ErrUnavailable.Withf("the node is closed"))

// mayPass reports whether err is temporary: the application may accept the peer later.
func mayPass(err error) bool {
	switch codec.AbortOf(err).Code {
	case codec.Unavailable, codec.Overloaded, codec.Expired, codec.Canceled:
		return true
	}
	return false
}

var (
	errTooSlow = errors.New("the handshake was not completed in time")
	errTooLate = errors.New("the handshake has been given up")
)

// exposed returns the error for sessions that cannot be resumed over an address without encryption.
func exposed(at any) *Abort {
	return codec.ErrUnauthorized.Withf("WithResume: the traffic with %v is not encrypted, and its readers could take sessions over: use tls://, or allow it with Access.PlainCredentials", at)
}
