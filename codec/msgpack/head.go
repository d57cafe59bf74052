package msgpack

import "unicode/utf8"

// itemKind is the type of an item.
type itemKind uint8

const (
	isMalformed itemKind = iota
	isNil
	isBool
	isInteger
	isFloat
	isText
	isBytes
	isArray
	isMap
	isExt
)

// names has the names of kinds in errors.
var names = [...]string{
	isMalformed: "nothing", isNil: "nil", isBool: "a bool", isInteger: "an integer", isFloat: "a float", isText: "a string",
	isBytes: "a binary string", isArray: "an array", isMap: "a map", isExt: "an extension type",
}

// itemHead is the start of an item.
type itemHead struct {
	kind itemKind
	size int // bytes of the head; of numbers, bools and nil: of the whole item
	// bytes of the content behind the head, or the number of items, or pairs of items, behind it
	n   int
	ext int8 // the extension type
}

// timestamp is the extension type of times.
const timestamp = -1

// depthMost is the maximum nesting of arrays and maps.
const depthMost = 32

// itemReader reads the items of data.
type itemReader struct {
	data []byte
	at   int // the next byte
}

// headRow has the meaning of a first byte from 0xc0 to 0xdf.
type headRow struct {
	kind   itemKind
	length int // bytes that hold the length
	fixed  int // bytes of content without a length
}

var rows = [32]headRow{
	{isNil, 0, 0}, {}, {isBool, 0, 0}, {isBool, 0, 0},
	{isBytes, 1, 0}, {isBytes, 2, 0}, {isBytes, 4, 0},
	{isExt, 1, 0}, {isExt, 2, 0}, {isExt, 4, 0},
	{isFloat, 0, 4}, {isFloat, 0, 8},
	{isInteger, 0, 1}, {isInteger, 0, 2}, {isInteger, 0, 4}, {isInteger, 0, 8},
	{isInteger, 0, 1}, {isInteger, 0, 2}, {isInteger, 0, 4}, {isInteger, 0, 8},
	{isExt, 0, 1}, {isExt, 0, 2}, {isExt, 0, 4}, {isExt, 0, 8}, {isExt, 0, 16},
	{isText, 1, 0}, {isText, 2, 0}, {isText, 4, 0},
	{isArray, 2, 0}, {isArray, 4, 0},
	{isMap, 2, 0}, {isMap, 4, 0},
}

// peek returns the head of the next item. It is malformed if the remaining bytes cannot hold the
// announced content: each item takes at least a byte.
func (r *itemReader) peek() itemHead {
	left := len(r.data) - r.at
	if left <= 0 {
		return itemHead{}
	}
	h := itemHead{size: 1}
	switch b := r.data[r.at]; {
	case b < 0x80 || b >= 0xe0:
		h.kind = isInteger
		return h
	case b < 0x90:
		h.kind, h.n = isMap, int(b&15)
	case b < 0xa0:
		h.kind, h.n = isArray, int(b&15)
	case b < 0xc0:
		h.kind, h.n = isText, int(b&31)
	default:
		return r.long(rows[b-0xc0], left)
	}
	return h.within(left, int64(h.n))
}

// long returns a head of a kind with a separate first byte.
func (r *itemReader) long(c headRow, left int) itemHead {
	h := itemHead{kind: c.kind, size: 1 + c.length}
	if c.kind == isExt {
		h.size++
	}
	if left < h.size {
		return itemHead{}
	}
	b := r.data[r.at:]
	n := int64(c.fixed) // of 64 bits: a length may exceed an int
	for _, b := range b[1 : 1+c.length] {
		n = n<<8 | int64(b)
	}
	if c.kind == isExt {
		h.ext = int8(b[h.size-1])
	}
	if h = h.within(left, n); h.kind == isInteger || h.kind == isFloat {
		h.size, h.n = h.size+h.n, 0
	}
	return h
}

// within returns h with n, if n items fit into the rest of the input.
func (h itemHead) within(left int, n int64) itemHead {
	need := n
	if h.kind == isMap {
		need *= 2
	}
	if need > int64(left-h.size) {
		return itemHead{}
	}
	h.n = int(n)
	return h
}

// item moves behind a head and, except for arrays and maps, its content, and returns both.
func (r *itemReader) item(h itemHead) (whole, content []byte) {
	n := h.size
	if h.kind != isArray && h.kind != isMap {
		n += h.n
	}
	whole = r.data[r.at : r.at+n]
	r.at += n
	return whole, whole[h.size:]
}

// skip moves behind an item that is nested depth deep. It checks that as a decoder would.
func (r *itemReader) skip(depth int) error {
	h := r.peek()
	items := h.n
	switch h.kind {
	case isMalformed:
		return r.malformed()
	case isMap:
		items *= 2
	case isArray:
	default:
		_, content := r.item(h)
		if h.kind == isText && !utf8.Valid(content) {
			return errNoText
		}
		return nil
	}
	if depth == depthMost {
		return errTooDeep
	}
	r.item(h)
	return r.skipAll(items, depth+1)
}

// skipAll skips items.
func (r *itemReader) skipAll(items, depth int) error {
	for range items {
		if err := r.skip(depth); err != nil {
			return err
		}
	}
	return nil
}
