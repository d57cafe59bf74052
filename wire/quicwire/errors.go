package quicwire

import (
	"errors"
	"io"
	"os"

	"github.com/quic-go/quic-go"
)

// quicError is an error of package quic, which [errors.As] finds in it. Those errors match
// net.ErrClosed, whichever side ended the connection, and for any reason. For a Wire that means a
// close on this side, so failure does not unwrap to it.
type quicError struct{ err error }

// Error implements error.
func (f quicError) Error() string { return f.err.Error() }

// As makes the error of package quic available.
func (f quicError) As(target any) bool { return errors.As(f.err, target) }

// Timeout implements net.Error.
func (f quicError) Timeout() bool { return isTimeout(f.err) }

// Temporary implements net.Error.
func (f quicError) Temporary() bool { return false }

// fault converts an error of package quic to one of this package.
func fault(err error) error {
	stopped := (*quic.StreamError)(nil)
	switch {
	case err == nil, err == io.EOF, errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case errors.As(err, &stopped) && stopped.ErrorCode == codeClosed:
		return errPeerClosed
	}
	return quicError{err}
}

var errPeerClosed = errors.New("the peer has closed the wire")

// isTimeout reports whether the peer was silent for too long.
func isTimeout(err error) bool {
	idle, handshake := (*quic.IdleTimeoutError)(nil), (*quic.HandshakeTimeoutError)(nil)
	return errors.As(err, &idle) || errors.As(err, &handshake)
}
