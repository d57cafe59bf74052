package classic

import (
	"errors"
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
)

// ErrIncomplete is returned by a Decoder for the beginning of a message: try again with more bytes.
var ErrIncomplete = errors.New("classic: the message is incomplete")

// FormatError is the reason why bytes are not a message or a value of the classic format, or why a
// value has no encoding in the format. errors.Is(err, codec.ErrProtocol) holds.
type FormatError struct {
	Offset int    // where in the bytes the offending item starts
	Reason string // for users
}

// Error returns the offset and the reason.
func (e *FormatError) Error() string {
	return fmt.Sprintf("classic: bad format at byte %d: %s", e.Offset, e.Reason)
}

// Text returns the text that is sent to the peer.
func (e *FormatError) Text() string {
	return fmt.Sprintf("bad format at byte %d: %s", e.Offset, e.Reason)
}

// Is makes every FormatError a codec.ErrProtocol.
func (e *FormatError) Is(target error) bool {
	a, ok := target.(*codec.Abort)
	return ok && a != nil && a.Code == codec.Protocol
}

func malformed(at int, format string, args ...any) error {
	return &FormatError{Offset: at, Reason: fmt.Sprintf(format, args...)}
}

// SizeError reports that a message has more bytes than allowed. errors.Is(err, codec.ErrTooLarge)
// holds.
type SizeError struct {
	Size  int // bytes that the message has, or at least has
	Limit int // bytes
}

// Error returns both numbers.
func (e *SizeError) Error() string {
	return fmt.Sprintf("classic: message of %d bytes or more exceeds the limit of %d", e.Size, e.Limit)
}

// Is makes every SizeError a codec.ErrTooLarge.
func (e *SizeError) Is(target error) bool {
	a, ok := target.(*codec.Abort)
	return ok && a != nil && a.Code == codec.TooLarge
}
