package message

import (
	"fmt"
	"math"

	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// appendStart appends the start of every message but Control: the array's head, the type and the
// pipe id. count is the number of fields behind it, without meta.
func appendStart(dst []byte, t Type, count int, pipe uint64, meta *Meta) []byte {
	n := 2 + count
	if meta.on(t) {
		n++
	}
	dst = append(dst, cborhead.Array|byte(n), byte(t))
	return cborhead.AppendUint(dst, pipe)
}

// start reads the head of a frame that has to be a message of type t with lo to hi elements, and
// returns their number.
func start(r *cborhead.Reader, t Type, lo, hi int) int {
	n := r.Array("the message")
	if got := Type(r.Uint("message type", uint64(PartType))); got != t {
		r.Fail(0, "%s where %s is expected", got, t)
	}
	arity(r, n, lo, hi, t.String())
	return n
}

// arity fails unless n, the number of a frame's elements, is in lo to hi.
func arity(r *cborhead.Reader, n, lo, hi int, what string) {
	if n < lo || n > hi {
		most := fmt.Sprintf("to %d", hi)
		if hi == math.MaxInt {
			most = "or more"
		}
		r.Fail(0, "%s with %d elements, not %d %s", what, n, lo, most)
	}
}

// end returns the error of the reader, or one for trailing bytes.
func end(r *cborhead.Reader) error {
	if err := r.End(); err != nil {
		return (*FrameError)(err)
	}
	return nil
}

// readPipeOrNull reads a pipe id, or null in its place.
func readPipeOrNull(r *cborhead.Reader) (pipe uint64, isNull bool) {
	if r.Null() {
		return 0, true
	}
	return r.Uint("pipe id", MaxPipe), false
}
