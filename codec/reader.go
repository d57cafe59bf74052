package codec

import (
	"fmt"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/internal/cut"
)

// maxDepth is how deep arrays, maps and tags may be nested in a value that is skipped.
const maxDepth = 4

// FrameError says why a frame is not one of protocol 1. errors.Is(err, ErrProtocol) holds for it.
type FrameError struct {
	Offset int    // where in the frame the offending item starts
	Reason string // for people
}

// Error returns the offset and the reason.
func (e *FrameError) Error() string {
	return fmt.Sprintf("asterisque: bad frame at byte %d: %s", e.Offset, e.Reason)
}

// Is makes every FrameError an ErrProtocol.
func (e *FrameError) Is(target error) bool {
	a, ok := target.(*Abort)
	return ok && a != nil && a.Code == Protocol
}

// reader takes a frame apart, item by item. Behind the first error it finds nothing more, so that a
// message is read without a check after each field.
type reader struct {
	frame []byte // empty after an error
	at    int    // the next byte
	err   *FrameError
}

// fail keeps the first error, and lets the frame end here.
func (r *reader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &FrameError{Offset: at, Reason: fmt.Sprintf(format, args...)}
		r.frame, r.at = nil, 0
	}
}

// start reads the head of a frame that has to be a message of type t with lo to hi elements, and
// returns their number.
func (r *reader) start(t Type, lo, hi int) int {
	n := r.array("the message")
	if got := Type(r.uint("message type", uint64(CloseType))); got != t {
		r.fail(0, "%s where %s is expected", got, t)
	}
	r.arity(n, lo, hi, t.String())
	return n
}

// arity fails unless n, the number of a frame's elements, is in lo to hi.
func (r *reader) arity(n, lo, hi int, what string) {
	if n < lo || n > hi {
		r.fail(0, "%s with %d elements, not %d to %d", what, n, lo, hi)
	}
}

// end returns the error if there was one or if the frame goes on.
func (r *reader) end() error {
	if r.err == nil && r.at != len(r.frame) {
		r.fail(r.at, "%d bytes after the frame", len(r.frame)-r.at)
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

// head reads the head of an item: its major type and its number. The bits of a floating-point
// number pass as a number.
func (r *reader) head() (major byte, n uint64) {
	at := r.at
	if at >= len(r.frame) {
		r.fail(at, "ends in the middle of the message")
		return other, 0
	}
	b := r.frame[at]
	r.at++
	if b&31 < 24 {
		return b &^ 31, uint64(b & 31)
	}
	return b &^ 31, r.argument(b)
}

// shortest holds the first number for which 1, 2, 4 and 8 bytes are the shortest form.
var shortest = [4]uint64{24, 1 << 8, 1 << 16, 1 << 32}

// argument reads the number that follows an item's first byte.
func (r *reader) argument(first byte) uint64 {
	at, rest := r.at-1, r.frame[r.at:]
	if first&31 > 27 {
		r.fail(at, "%s", badLength(first))
		return 0
	}
	size := 1 << (first & 3)
	if len(rest) < size {
		r.fail(at, "ends in the middle of the message")
		return 0
	}
	var n uint64
	for _, b := range rest[:size] {
		n = n<<8 | uint64(b)
	}
	r.at += size
	switch {
	case first&^31 != other && n < shortest[first&3]:
		r.fail(at, "non-shortest integer or length")
	case first == other|24 && n < 32:
		r.fail(at, "simple value %d in two bytes", n)
	}
	return n
}

// badLength names what is wrong with a first byte whose low bits are 28 to 31.
func badLength(first byte) string {
	switch {
	case first&31 < 31:
		return "reserved length"
	case first == 0xff:
		return "break without an indefinite length"
	default:
		return "indefinite length"
	}
}

// take returns the next n bytes, which belong to the item that starts at at.
func (r *reader) take(at int, n uint64) []byte {
	if n > uint64(len(r.frame)-r.at) {
		r.fail(at, "ends in the middle of the message")
		return nil
	}
	b := r.frame[r.at : r.at+int(n) : r.at+int(n)]
	r.at += int(n)
	return b
}

// array reads the head of an array and returns its number of elements, which the rest of the frame
// is long enough to hold.
func (r *reader) array(what string) int {
	return r.count(what, array)
}

// mapping reads the head of a map and returns its number of entries, at most limit.
func (r *reader) mapping(what string, limit int) int {
	at := r.at
	n := r.count(what, mapping)
	if n > limit {
		r.fail(at, "%s has %d entries, more than %d", what, n, limit)
		return 0
	}
	return n
}

func (r *reader) count(what string, want byte) int {
	at := r.at
	major, n := r.head()
	switch {
	case major != want:
		r.fail(at, "%s is %s, not %s", what, kind(major), kind(want))
		return 0
	case n > uint64(len(r.frame)-r.at):
		r.fail(at, "%s has more elements than the frame has bytes", what)
		return 0
	}
	return int(n)
}

// key reads the i-th key of a map; it has to be larger than the one before.
func (r *reader) key(i int, before uint64) uint64 {
	at := r.at
	key := r.uint("key", MaxPipe)
	if i > 0 && key <= before {
		r.fail(at, "key %d after key %d", key, before)
	}
	return key
}

// uint reads an unsigned integer of at most limit.
func (r *reader) uint(what string, limit uint64) uint64 {
	return r.uintFrom(what, 0, limit)
}

func (r *reader) uintFrom(what string, lo, hi uint64) uint64 {
	at := r.at
	major, n := r.head()
	switch {
	case major != unsigned:
		r.fail(at, "%s is %s, not %s", what, kind(major), kind(unsigned))
		return 0
	case n < lo || n > hi:
		r.fail(at, "%s %d is not in %d to %d", what, n, lo, hi)
		return 0
	}
	return n
}

// int reads an integer of -limit-1 to limit, as the sizes of two's complement have it.
func (r *reader) int(what string, limit int64) int64 {
	at := r.at
	major, n := r.head()
	switch {
	case major != unsigned && major != negative:
		r.fail(at, "%s is %s, not an integer", what, kind(major))
		return 0
	case n > uint64(limit):
		r.fail(at, "%s is not in %d to %d", what, -limit-1, limit)
		return 0
	case major == negative:
		return ^int64(n)
	}
	return int64(n)
}

// bytes reads a byte string; the result is a part of the frame.
func (r *reader) bytes(what string) []byte {
	return r.string(what, byteString)
}

// bytesOf reads a byte string of lo to hi bytes.
func (r *reader) bytesOf(what string, lo, hi int) []byte {
	at := r.at
	b := r.bytes(what)
	if len(b) < lo || len(b) > hi {
		r.fail(at, "%s of %d bytes, not %d to %d", what, len(b), lo, hi)
	}
	return b
}

// text reads a text string.
func (r *reader) text(what string) string {
	return string(r.utf8(what))
}

// message reads a text for people and keeps no more of it than may be sent: it goes into logs.
func (r *reader) message() string {
	return string(cut.Text(r.utf8("message"), MaxReason))
}

// utf8 reads a text string; the result is a part of the frame.
func (r *reader) utf8(what string) []byte {
	at := r.at
	b := r.string(what, textString)
	if !utf8.Valid(b) {
		r.fail(at, "%s is not valid UTF-8", what)
	}
	return b
}

func (r *reader) string(what string, want byte) []byte {
	at := r.at
	major, n := r.head()
	if major != want {
		r.fail(at, "%s is %s, not %s", what, kind(major), kind(want))
		return nil
	}
	return r.take(at, n)
}

// null reads a null if that comes next.
func (r *reader) null() bool {
	if r.at >= len(r.frame) || r.frame[r.at] != null {
		return false
	}
	r.at++
	return true
}

// simple reads the one byte that true, false and null are.
func (r *reader) simple() byte {
	b := r.take(r.at, 1)
	if b == nil {
		return 0
	}
	return b[0]
}

// skip reads past one item of any kind that stands depth deep in the value that is skipped. It
// returns how many bytes a string holds, and 0 for everything else.
func (r *reader) skip(depth int) (length int) {
	at := r.at
	major, n := r.head()
	switch major {
	case byteString, textString:
		return len(r.take(at, n))
	case array:
		r.skipItems(at, n, depth)
	case mapping:
		if n > uint64(len(r.frame)) {
			r.fail(at, "a map has more elements than the frame has bytes")
			return 0
		}
		r.skipItems(at, 2*n, depth)
	case tag:
		r.skipItems(at, 1, depth)
	}
	return 0
}

// skipItems reads past the n items inside the one that starts at at.
func (r *reader) skipItems(at int, n uint64, depth int) {
	if depth == maxDepth {
		r.fail(at, "nested deeper than %d", maxDepth)
		return
	}
	for ; n > 0 && r.err == nil; n-- {
		r.skip(depth + 1)
	}
}

// kind names a major type.
func kind(major byte) string {
	return [...]string{
		"an unsigned integer", "a negative integer", "a byte string", "a text string",
		"an array", "a map", "a tag", "a simple value or floating-point number",
	}[major>>5]
}
