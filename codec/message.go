package codec

import "strconv"

// MaxPipe is the largest pipe id, and the largest of all other unsigned numbers in a frame: every
// language can hold it, those that know only floating point included.
const MaxPipe = 1<<53 - 1

// Type tells the four messages apart; it is the first element of every frame.
type Type uint8

// The four messages.
const (
	ControlType Type = iota // speaks about the session
	OpenType                // starts a pipe
	BlockType               // carries a piece of a stream
	CloseType               // ends a pipe
)

var typeNames = [...]string{"Control", "Open", "Block", "Close"}

// String returns the message's name.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "Type(" + strconv.Itoa(int(t)) + ")"
}

// TypeOf returns which message a frame holds. It reads no more than that: the frame may still be
// malformed.
func TypeOf(frame []byte) (Type, error) {
	r := reader{frame: frame}
	r.array("the message")
	t := Type(r.uint("message type", uint64(CloseType)))
	if r.err != nil {
		return 0, r.err
	}
	return t, nil
}

// appendStart appends what every message but Control begins with: the array's head, the type and
// the pipe id. count is the number of fields that follow, meta not counted.
func appendStart(dst []byte, t Type, count int, pipe uint64, meta *Meta) []byte {
	n := 2 + count
	if meta.on(t) {
		n++
	}
	dst = append(dst, array|byte(n), byte(t))
	return appendUint(dst, pipe)
}
