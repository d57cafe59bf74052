package asterisque

import (
	"errors"
	"io"

	"github.com/asterisque-go/asterisque/codec"
)

// beyondEOF returns what err says beside that the wire has ended.
func beyondEOF(err error) string {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return ""
	}
	return ": " + err.Error()
}

// passing returns ErrHandshake for what may have been an accident, so that another attempt may
// succeed.
func passing(err error, format string, args ...any) *Abort {
	a := codec.ErrHandshake.Withf(format, args...)
	a.Cause = &passingError{a.Message, err}
	return a
}

type passingError struct {
	text string // that of the Abort, which says it once
	err  error
}

func (p *passingError) Error() string        { return p.text }
func (p *passingError) Unwrap() error        { return p.err }
func (p *passingError) Is(target error) bool { return target == errPassing }

var errPassing = errors.New("this may pass")

var errNodeClosed = neverSent(codec.ErrUnavailable.Withf("the node is closed"))

// mayPass reports whether the application may let in later whom it has not let in because of err.
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

// exposed returns why no session can be resumed over what is at an address: somebody else can read
// it.
func exposed(at any) *Abort {
	return codec.ErrUnauthorized.Withf("WithResume: what crosses %v is not encrypted, and whoever reads it could take sessions over: use tls://, or allow it with Access.PlainCredentials", at)
}
