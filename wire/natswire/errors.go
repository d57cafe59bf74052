package natswire

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrNobody reports that there is no listener at the dialled name. It wraps ECONNREFUSED, for
	// programs that branch on it as they do over TCP.
	ErrNobody = fmt.Errorf("no listener at that name: %w", syscall.ECONNREFUSED)

	// ErrRefused reports that a listener has answered, but opens no Wire. The text is the
	// listener's reason, for example that its node has reached its limit of peers.
	ErrRefused = errors.New("the listener refuses the wire")

	// ErrDisconnected reports that the connection to the NATS server was lost. Package nats makes a
	// new one, but messages in flight may be lost, so the Wire has failed; dial another one.
	ErrDisconnected = errors.New("the connection to the NATS server was lost")

	// ErrPeerGone reports that the peer is lost: the NATS server has no reader for messages to it,
	// or no message has arrived from it for 15 seconds.
	ErrPeerGone = errors.New("the peer is gone")

	// ErrPeerFailed reports that the peer has ended the Wire because of an error on its side; the
	// text is that error.
	ErrPeerFailed = errors.New("the wire has failed at the peer")

	// ErrForeign reports a message that is not of this protocol, or that is out of place: the peer
	// is broken, or another program knows the subject of the Wire.
	ErrForeign = errors.New("a message does not belong here")
)

// SequenceError reports that the next message had the wrong number. Messages were lost, as NATS
// drops those of a slow consumer, or a message was repeated or forged. All earlier messages are
// intact; the Wire has failed.
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

// PayloadError reports that the NATS server limits messages to a size that is too small for a Wire.
// Its setting max_payload has to be raised.
type PayloadError struct {
	Limit int64 // max_payload of the server, in bytes
	Need  int64 // the minimum for a Wire
}

// Error implements error.
func (e *PayloadError) Error() string {
	return fmt.Sprintf("max_payload of the NATS server is %d bytes, and a Wire needs %d at least; raise max_payload in the server's configuration, best to its default of 1MB", e.Limit, e.Need)
}

// errPeerClosed is the error of writing after a graceful close by the peer.
var errPeerClosed = errors.New("the peer has closed the wire")

// disconnected returns the error for a lost connection; why may be nil. The error does not wrap
// why, which may be io.EOF: that would mean a graceful end.
func disconnected(why error) error {
	if why == nil {
		return ErrDisconnected
	}
	return fmt.Errorf("%w: %v", ErrDisconnected, why)
}
