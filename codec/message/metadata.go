package message

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/cborhead"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

// Bounds of the metadata of a call.
const (
	MaxMetadataEntries = 32
	MaxMetadata        = 4 << 10 // bytes of all keys and values together
)

// AppendMetadata appends m in the form of [Meta].Metadata, and returns the longer slice; for a map
// without entries it appends nothing. Values are strings or []byte. The error is a
// [codec.ErrBadParams] that names the entry: keys must not be empty, keys and strings are UTF-8,
// and there are at most [MaxMetadataEntries] entries and [MaxMetadata] bytes.
func AppendMetadata(dst []byte, m map[string]any) ([]byte, error) {
	if len(m) == 0 {
		return dst, nil
	}
	var few [MaxMetadataEntries]string
	keys := few[:0]
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	size, err := checkValues(m, keys)
	if err != nil {
		return dst, err
	}
	dst = cborhead.AppendHead(slices.Grow(dst, size), cborhead.Map, uint64(len(keys)))
	for _, key := range keys {
		dst = cborhead.AppendText(dst, key)
		switch v := m[key].(type) {
		case string:
			dst = cborhead.AppendText(dst, v)
		case []byte:
			dst = cborhead.AppendBytes(dst, v)
		}
	}
	return dst, nil
}

// checkValues validates the entries of m, in the order of keys, and returns their size as an
// encoded map.
func checkValues(m map[string]any, keys []string) (size int, err error) {
	var c metadataCount
	size = cborhead.HeadSize(uint64(len(keys)))
	for _, key := range keys {
		length, wrong := 0, ""
		switch v := m[key].(type) {
		case string:
			if length = len(v); !utf8.ValidString(v) {
				wrong = "the text is not valid UTF-8"
			}
		case []byte:
			length = len(v)
		default:
			wrong = fmt.Sprintf("a value of type %T, not string or []byte", v)
		}
		if !utf8.ValidString(key) {
			wrong = "the key is not valid UTF-8"
		}
		if wrong = cmp.Or(c.add(len(key), length), wrong); wrong != "" {
			return 0, badMetadata("entry %q: %s", truncate.Text(key, shownKey), wrong)
		}
		size += cborhead.HeadSize(uint64(len(key))) + len(key) + cborhead.HeadSize(uint64(length)) + length
	}
	return size, nil
}

// CheckMetadata returns the error of ParseMetadata for b, or nil.
func CheckMetadata(b []byte) error { return readMetadata(b, nil) }

// ParseMetadata parses the output of AppendMetadata, and otherwise only a map without entries. The
// result shares no memory with b. The error is a [codec.ErrBadParams] that names the entry.
func ParseMetadata(b []byte) (map[string]any, error) {
	m := make(map[string]any)
	if err := readMetadata(b, m); err != nil {
		return nil, err
	}
	return m, nil
}

// readMetadata checks b, and puts its entries into a map unless that is nil.
func readMetadata(b []byte, into map[string]any) error {
	r := cborhead.Reader{Data: b}
	var c metadataCount
	var before []byte
	for i := range r.Map("it", len(b)) {
		key := r.UTF8("the key")
		if r.Err != nil {
			return badMetadata("entry %d: %s", i+1, r.Err.Reason)
		}
		value, text := r.Str("the value")
		wrong := c.add(len(key), len(value))
		switch order := compareKeys(before, key); {
		case r.Err != nil:
			wrong = r.Err.Reason
		case i > 0 && order == 0:
			wrong = "the key comes twice"
		case i > 0 && order > 0:
			wrong = "its place is before the entry that it follows"
		}
		if wrong != "" {
			return badMetadata("entry %q: %s", truncate.Text(string(key), shownKey), wrong)
		}
		if before = key; into != nil {
			into[string(key)] = valueOf(value, text)
		}
	}
	if r.Err == nil && r.At < len(r.Data) {
		r.Fail(r.At, "%d bytes after the map", len(r.Data)-r.At)
	}
	if r.Err != nil {
		return badMetadata("byte %d: %s", r.Err.Offset, r.Err.Reason)
	}
	return nil
}

// compareKeys compares keys by the order of their encoding: a shorter key comes first.
func compareKeys(a, b []byte) int { return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b)) }

func valueOf(value []byte, text bool) any {
	if text {
		return string(value)
	}
	return append([]byte{}, value...)
}

// metadataCount counts entries, and the bytes of their keys and values.
type metadataCount struct{ entries, bytes int }

// add counts an entry by the lengths of its key and its value. It returns the reason why the entry
// is invalid, or "".
func (c *metadataCount) add(key, value int) (wrong string) {
	c.entries++
	c.bytes += key + value
	switch {
	case key == 0:
		return "the key is empty"
	case c.entries > MaxMetadataEntries:
		return fmt.Sprintf("one more than the %d entries that there may be", MaxMetadataEntries)
	case c.bytes > MaxMetadata:
		return fmt.Sprintf("with it keys and values have %d bytes, and %d are the most", c.bytes, MaxMetadata)
	}
	return ""
}

// shownKey is how many bytes of a key an error shows.
const shownKey = 64

func badMetadata(format string, args ...any) error {
	return codec.ErrBadParams.Withf("metadata: "+format, args...)
}
