package cborhead

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// maxDepth is the maximum depth of arrays, maps and tags in a skipped value.
const maxDepth = 4

// Error describes an invalid item.
type Error struct {
	Offset int    // of the item in the data
	Reason string // for people
}

// Reader reads data item by item. After the first error it has no more data, so its user can read a
// whole message before it checks for an error. Returned bytes are parts of the data. The zero
// values returned after an error are meaningless.
type Reader struct {
	Data []byte // empty after an error
	At   int    // the next byte
	Err  *Error // the first one, or nil
}

// Fail records an error, unless there was one before, and ends the data.
func (r *Reader) Fail(at int, format string, args ...any) {
	if r.Err == nil {
		r.Err = &Error{Offset: at, Reason: fmt.Sprintf(format, args...)}
		r.Data, r.At = nil, 0
	}
}

// End returns the first error. Data after the last item is an error, too.
func (r *Reader) End() *Error {
	if r.Err == nil && r.At != len(r.Data) {
		r.Fail(r.At, "%d bytes after the frame", len(r.Data)-r.At)
	}
	return r.Err
}

// Head reads the head of an item: its major type and its number. The bits of a floating-point
// number are returned as a number.
func (r *Reader) Head() (major byte, n uint64) {
	at := r.At
	if at >= len(r.Data) {
		r.Fail(at, "ends in the middle of the message")
		return Other, 0
	}
	b := r.Data[at]
	r.At++
	if b&31 < 24 {
		return b &^ 31, uint64(b & 31)
	}
	return b &^ 31, r.argument(b)
}

// shortest contains the first number for which 1, 2, 4 and 8 bytes are the shortest form.
var shortest = [4]uint64{24, 1 << 8, 1 << 16, 1 << 32}

// argument reads the number after the first byte of an item.
func (r *Reader) argument(first byte) uint64 {
	at, rest := r.At-1, r.Data[r.At:]
	if first&31 > 27 {
		r.Fail(at, "%s", badLength(first))
		return 0
	}
	size := 1 << (first & 3)
	if len(rest) < size {
		r.Fail(at, "ends in the middle of the message")
		return 0
	}
	var n uint64
	switch size {
	case 1:
		n = uint64(rest[0])
	case 2:
		n = uint64(binary.BigEndian.Uint16(rest))
	case 4:
		n = uint64(binary.BigEndian.Uint32(rest))
	default:
		n = binary.BigEndian.Uint64(rest)
	}
	r.At += size
	switch {
	case first&^31 != Other && n < shortest[first&3]:
		r.Fail(at, "non-shortest integer or length")
	case first == Other|24 && n < 32:
		r.Fail(at, "simple value %d in two bytes", n)
	}
	return n
}

// badLength describes a first byte with low bits of 28 to 31.
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

// take returns the next n bytes, which belong to the item at position at.
func (r *Reader) take(at int, n uint64) []byte {
	if n > uint64(len(r.Data)-r.At) {
		r.Fail(at, "ends in the middle of the message")
		return nil
	}
	b := r.Data[r.At : r.At+int(n) : r.At+int(n)]
	r.At += int(n)
	return b
}

// Array reads the head of an array and returns its number of elements. The rest of the data is at
// least as many bytes long.
func (r *Reader) Array(what string) int {
	return r.count(what, Array)
}

// Map reads the head of a map and returns its number of entries, at most limit.
func (r *Reader) Map(what string, limit int) int {
	at := r.At
	n := r.count(what, Map)
	if n > limit {
		r.Fail(at, "%s has %d entries, more than %d", what, n, limit)
		return 0
	}
	return n
}

func (r *Reader) count(what string, want byte) int {
	at := r.At
	major, n := r.Head()
	switch {
	case major != want:
		r.Fail(at, "%s is %s, not %s", what, kind(major), kind(want))
		return 0
	case n > uint64(len(r.Data)-r.At):
		r.Fail(at, "%s has more elements than the frame has bytes", what)
		return 0
	}
	return int(n)
}

// Key reads the i-th key of a map, which has to be larger than the key before.
func (r *Reader) Key(i int, before uint64) uint64 {
	at := r.At
	key := r.Uint("key", MaxNumber)
	if i > 0 && key <= before {
		r.Fail(at, "key %d after key %d", key, before)
	}
	return key
}

// Uint reads an unsigned integer of at most limit.
func (r *Reader) Uint(what string, limit uint64) uint64 {
	return r.UintFrom(what, 0, limit)
}

// UintFrom reads an unsigned integer from lo to hi.
func (r *Reader) UintFrom(what string, lo, hi uint64) uint64 {
	at := r.At
	major, n := r.Head()
	switch {
	case major != Unsigned:
		r.Fail(at, "%s is %s, not %s", what, kind(major), kind(Unsigned))
		return 0
	case n < lo || n > hi:
		r.Fail(at, "%s %d is not in %d to %d", what, n, lo, hi)
		return 0
	}
	return n
}

// Int reads an integer from -limit-1 to limit, the range of two's complement.
func (r *Reader) Int(what string, limit int64) int64 {
	at := r.At
	major, n := r.Head()
	switch {
	case major != Unsigned && major != Negative:
		r.Fail(at, "%s is %s, not an integer", what, kind(major))
		return 0
	case n > uint64(limit):
		r.Fail(at, "%s is not in %d to %d", what, -limit-1, limit)
		return 0
	case major == Negative:
		return ^int64(n)
	}
	return int64(n)
}

// Bytes reads a byte string; the result is a part of the data.
func (r *Reader) Bytes(what string) []byte {
	return r.str(what, Bytes)
}

// BytesOf reads a byte string of lo to hi bytes.
func (r *Reader) BytesOf(what string, lo, hi int) []byte {
	at := r.At
	b := r.Bytes(what)
	if len(b) < lo || len(b) > hi {
		r.Fail(at, "%s of %d bytes, not %d to %d", what, len(b), lo, hi)
	}
	return b
}

// Str reads a string of either kind; the result is a part of the data.
func (r *Reader) Str(what string) (b []byte, text bool) {
	at := r.At
	major, n := r.Head()
	if text = major == Text; !text && major != Bytes {
		r.Fail(at, "%s is %s, not %s or %s", what, kind(major), kind(Text), kind(Bytes))
		return nil, false
	}
	if b = r.take(at, n); text && !utf8.Valid(b) {
		r.Fail(at, "%s is not valid UTF-8", what)
	}
	return b, text
}

// Text reads a text string.
func (r *Reader) Text(what string) string {
	return string(r.UTF8(what))
}

// UTF8 reads a text string; the result is a part of the data.
func (r *Reader) UTF8(what string) []byte {
	at := r.At
	b := r.str(what, Text)
	if !utf8.Valid(b) {
		r.Fail(at, "%s is not valid UTF-8", what)
	}
	return b
}

func (r *Reader) str(what string, want byte) []byte {
	at := r.At
	major, n := r.Head()
	if major != want {
		r.Fail(at, "%s is %s, not %s", what, kind(major), kind(want))
		return nil
	}
	return r.take(at, n)
}

// Null reads a null if the next item is one.
func (r *Reader) Null() bool {
	if r.At >= len(r.Data) || r.Data[r.At] != Null {
		return false
	}
	r.At++
	return true
}

// Simple reads one byte: a true, false or null.
func (r *Reader) Simple() byte {
	b := r.take(r.At, 1)
	if b == nil {
		return 0
	}
	return b[0]
}

// Skip skips one item of any kind. It returns the number of bytes of a string, and 0 for any other
// item.
func (r *Reader) Skip() (length int) { return r.skip(0) }

// skip is Skip at the given depth of the skipped value.
func (r *Reader) skip(depth int) (length int) {
	at := r.At
	major, n := r.Head()
	switch major {
	case Bytes, Text:
		return len(r.take(at, n))
	case Array:
		r.skipItems(at, n, depth)
	case Map:
		if n > uint64(len(r.Data)) {
			r.Fail(at, "a map has more elements than the frame has bytes")
			return 0
		}
		r.skipItems(at, 2*n, depth)
	case Tag:
		r.skipItems(at, 1, depth)
	}
	return 0
}

// skipItems skips the n items inside of the item at position at.
func (r *Reader) skipItems(at int, n uint64, depth int) {
	if depth == maxDepth {
		r.Fail(at, "nested deeper than %d", maxDepth)
		return
	}
	for ; n > 0 && r.Err == nil; n-- {
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
