package tunnel

import (
	"context"
	"errors"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// ErrMissing is returned by Read, and by each later one, when the peer has dropped Blocks of the
// stream: the bytes after them do not continue the bytes before. It ends the call. The peer has to
// send without a loss rate and without a time to live, as a [Conn] does.
var ErrMissing = errors.New("tunnel: bytes are missing: the peer sends with a loss rate, or with a time to live")

// refused returns the error for a call that becomes no connection. Its caller may dial again.
func refused(why *asterisque.Abort, format string, args ...any) error {
	a := why.Withf(format, args...)
	a.Ran = codec.Refused
	return a
}

// neverSent returns a copy of a for a call that was not sent.
func neverSent(a *asterisque.Abort) *asterisque.Abort {
	b := *a
	b.Ran = codec.NeverSent
	return &b
}

// gaveUp returns the error of a dial with a context that has ended with cause, and that has failed
// with failed because of it.
func gaveUp(cause error, failed *asterisque.Abort) error {
	a := *codec.AbortOf(cause)
	a.Message, a.Ran = failed.Message, failed.Ran
	if errors.Is(cause, context.DeadlineExceeded) {
		return timeoutError{&a}
	}
	return &a
}

// timeoutError is the error of a dial after its deadline. As in package net it is a timeout.
type timeoutError struct{ *asterisque.Abort }

// Timeout implements net.Error.
func (timeoutError) Timeout() bool { return true }

// Unwrap returns the Abort.
func (l timeoutError) Unwrap() error { return l.Abort }
