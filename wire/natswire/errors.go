package natswire

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrNobody says that nobody listens at the name that was dialled. It wraps ECONNREFUSED, for
	// programs that branch on it as they do over TCP.
	ErrNobody = fmt.Errorf("nobody listens at that name: %w", syscall.ECONNREFUSED)

	// ErrRefused says that a listener has answered and opens no Wire; the text is the listener's
	// reason, for example that its node has as many peers as it may have.
	ErrRefused = errors.New("the listener refuses the wire")

	// ErrDisconnected says that the connection to the NATS server was lost. Package nats makes a
	// new one, but what was on its way may be lost, so the Wire has failed; dial another one.
	ErrDisconnected = errors.New("the connection to the NATS server was lost")

	// ErrPeerGone says that the peer is there no more: the NATS server knows that nobody reads what
	// is sent to it, or nothing was heard from it for 15 seconds.
	ErrPeerGone = errors.New("the peer is gone")

	// ErrPeerFailed says that the peer has ended the Wire because it has failed there; the text
	// says why.
	ErrPeerFailed = errors.New("the wire has failed at the peer")

	// ErrForeign says that a message came that is none of this protocol, or does not fit where it
	// came: the peer is broken, or somebody else knows the subject of the Wire.
	ErrForeign = errors.New("a message does not belong here")
)

// SequenceError says that the next message was not the one that had to come. Messages were lost, as
// NATS drops those of a slow consumer, or somebody has repeated or made up one. What came before is
// whole; the Wire has failed.
type SequenceError struct {
	Want, Got uint64 // the numbers of the messages, in their direction of the Wire
}

// Error implements error.
func (e *SequenceError) Error() string {
	if e.Got > e.Want {
		return fmt.Sprintf("%d messages were lost: number %d came instead of %d", e.Got-e.Want, e.Got, e.Want)
	}
	return fmt.Sprintf("a message was repeated or made up: number %d came instead of %d", e.Got, e.Want)
}

// PayloadError says that the NATS server takes no messages as large as a Wire needs. Its setting
// max_payload has to be raised.
type PayloadError struct {
	Limit int64 // max_payload of the server, in bytes
	Need  int64 // what a Wire needs at least
}

// Error implements error.
func (e *PayloadError) Error() string {
	return fmt.Sprintf("max_payload of the NATS server is %d bytes, and a Wire needs %d at least; raise max_payload in the server's configuration, best to its default of 1MB", e.Limit, e.Need)
}

// errPeerClosed is what writing meets when the peer has closed in good order.
var errPeerClosed = errors.New("the peer has closed the wire")

// disconnected returns the error for a connection that was lost for a reason, or for none that is
// known. It does not wrap the reason, which may be io.EOF: that would be an end in good order.
func disconnected(why error) error {
	if why == nil {
		return ErrDisconnected
	}
	return fmt.Errorf("%w: %v", ErrDisconnected, why)
}
