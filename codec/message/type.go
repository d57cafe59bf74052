package message

import (
	"strconv"

	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// MaxPipe is the largest pipe id, and the largest of all other unsigned numbers in a frame: every
// language can represent it, even those with floating point only.
const MaxPipe = cborhead.MaxNumber

// Type distinguishes the messages; it is the first element of every frame.
type Type uint8

// The messages.
const (
	ControlType Type = 0 // concerns the session
	OpenType    Type = 1 // starts a pipe
	BlockType   Type = 2 // carries a piece of a stream
	CloseType   Type = 3 // ends a pipe
	PartType    Type = 4 // carries a part of a large Open, Block or Close
)

var typeNames = [...]string{"Control", "Open", "Block", "Close", "Part"}

// String returns the message's name.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "Type(" + strconv.Itoa(int(t)) + ")"
}

// TypeOf returns the type of the message in a frame. It reads only the type: the frame may still be
// malformed.
func TypeOf(frame []byte) (Type, error) {
	r := cborhead.Reader{Data: frame}
	r.Array("the message")
	t := Type(r.Uint("message type", uint64(PartType)))
	if r.Err != nil {
		return 0, (*FrameError)(r.Err)
	}
	return t, nil
}
