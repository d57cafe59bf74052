package classic

import "math"

// itemReader reads a sequence of items. After the first error it reads nothing more.
type itemReader struct {
	form  form
	data  []byte // the unread bytes
	at    int    // how many bytes were
	limit int    // of these
	err   error
}

// newReader returns a reader of data, which is complete.
func newReader(c Codec, data []byte) itemReader {
	return itemReader{form: c.form(), data: data, limit: len(data)}
}

func (r *itemReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.data = nil
}

// step moves behind an item, or fails.
func (r *itemReader) step(size int, err error) {
	if err != nil {
		if f, ok := err.(*FormatError); ok {
			f.Offset = r.at
		}
		r.fail(err)
		return
	}
	r.data = r.data[size:]
	r.at += size
}

// take returns the next n bytes, or nil after an error.
func (r *itemReader) take(n int) []byte {
	if int64(r.at)+int64(n) > int64(r.limit) {
		r.fail(&SizeError{Size: int(min(int64(r.at)+int64(n), math.MaxInt32)), Limit: r.limit})
		return nil
	}
	if len(r.data) < n {
		r.fail(ErrIncomplete)
		return nil
	}
	b := r.data[:n:n]
	r.step(n, nil)
	return b
}

// tag returns the next byte.
func (r *itemReader) tag() byte {
	if len(r.data) == 0 {
		r.fail(ErrIncomplete)
		return 0
	}
	b := r.data[0]
	r.step(1, nil)
	return b
}

func (r *itemReader) integer(width int) int64 {
	n, size, err := r.form.integer(r.data, width)
	r.step(size, err)
	return n
}

// count returns a number of 16 bits, as an unsigned one.
func (r *itemReader) count() int { return int(uint16(r.integer(2))) }

// fields returns the number of a struct's fields.
func (r *itemReader) fields() int { return int(uint8(r.integer(1))) }

func (r *itemReader) float(width int) uint64 {
	bits, size, err := r.form.float(r.data, width)
	r.step(size, err)
	return bits
}

func (r *itemReader) uuid() UUID {
	u, size, err := r.form.uuid(r.data)
	r.step(size, err)
	return u
}

// raw returns the bytes behind a length.
func (r *itemReader) raw() []byte {
	n, size, err := r.form.length(r.data)
	r.step(size, err)
	return r.take(n)
}

// skip moves behind the content of a value with this tag, without the values inside it, and returns
// the number of those values.
func (r *itemReader) skip(tag byte) (inside int) {
	switch tag {
	case nullTag, trueTag, falseTag:
	case int8Tag, int16Tag, int32Tag, int64Tag:
		r.integer(widths[tag])
	case float32Tag, float64Tag:
		r.float(widths[tag])
	case uuidTag:
		r.uuid()
	case binaryTag, stringTag:
		r.raw()
	case listTag:
		return r.count()
	case mapTag:
		return 2 * r.count()
	case structTag:
		r.raw()
		return r.fields()
	default:
		r.fail(malformed(r.at-1, "unexpected value tag %02x", tag))
	}
	return 0
}

// walk skips the next pending values. It returns how many were incomplete; after an error its
// position is at the first of these.
func (r *itemReader) walk(pending int64) int64 {
	for pending > 0 {
		if least := int64(r.at) + pending; least > int64(r.limit) { // a value has at least one byte
			r.fail(&SizeError{Size: int(min(least, math.MaxInt32)), Limit: r.limit})
			return pending
		}
		at := r.at
		tag := r.tag()
		if r.err != nil {
			return pending
		}
		inside := r.skip(tag)
		if r.err != nil {
			r.at = at
			return pending
		}
		pending += int64(inside) - 1
	}
	return 0
}

// whole returns an error unless there are exactly count values, with nothing behind them.
func (r *itemReader) whole(count int) error {
	all := len(r.data) + r.at
	r.walk(int64(count))
	switch r.err.(type) {
	case nil:
		if len(r.data) > 0 {
			return malformed(r.at, "%d bytes after the value", len(r.data))
		}
		return nil
	case *FormatError:
		return r.err
	}
	return malformed(all, "ends in the middle of a value") // or exceeds the rest of the data
}
