package message

import "github.com/asterisque-go/asterisque/internal/cborhead"

// longest is the head of the longest array with the number of its elements in the same byte.
const longest = cborhead.Array | 23

// Countable reports whether frame, which is well-formed, is numbered for a resume: Open, Block,
// Close, Part, and the Controls Credit, Drain, Stop and Skip.
func Countable(frame []byte) bool {
	if len(frame) < 3 || frame[0] > longest {
		return false // an unknown Control
	}
	if frame[1] != byte(ControlType) {
		return true
	}
	switch frame[2] {
	case creditCode, drainCode, stopCode, skipCode:
		return true
	}
	return false
}
