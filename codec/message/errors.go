package message

import (
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
)

// FrameError is the reason why a frame is not one of protocol 1. errors.Is(err,
// [codec.ErrProtocol]) holds for it.
type FrameError struct {
	Offset int    // where in the frame the offending item starts
	Reason string // for users
}

// Error returns the offset and the reason.
func (e *FrameError) Error() string {
	return fmt.Sprintf("asterisque: bad frame at byte %d: %s", e.Offset, e.Reason)
}

// Is makes every FrameError a codec.ErrProtocol.
func (e *FrameError) Is(target error) bool {
	a, ok := target.(*codec.Abort)
	return ok && a != nil && a.Code == codec.Protocol
}
