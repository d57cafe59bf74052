package codec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/asterisque-go/asterisque/internal/truncate"
)

// An object with a duplicate key is refused: encoding/json takes the last of its values, other
// decoders the first. Package json does not report it, so the keys are checked before.

// jsonKey is a key of an object. keySize bounds its memory.
type jsonKey struct {
	hash uint64
	at   int // of its first quote
}

// keyFinder finds duplicate keys. Its slices are reused.
type keyFinder struct {
	data   []byte
	keys   []jsonKey // of all open objects, in sequence
	opened []int     // for each open value, where its keys begin, or inArray
}

const inArray = -1

const mostKept = 1024 // capacity of slices that are kept for reuse

var (
	keySeed    = maphash.MakeSeed()
	keyFinders = sync.Pool{New: func() any { return new(keyFinder) }}
)

// keyTwice returns a duplicate key in one object of data, quoted. It stops where data is malformed.
func keyTwice(data []byte) (key []byte, found bool) {
	if bytes.IndexByte(data, '{') < 0 {
		return nil, false
	}
	f := keyFinders.Get().(*keyFinder)
	f.data = data
	at := f.find()
	if at >= 0 {
		key = f.quoted(at)
	}
	*f = keyFinder{keys: kept(f.keys), opened: kept(f.opened)}
	keyFinders.Put(f)
	return key, at >= 0
}

// kept returns s without its elements, or nothing if it is large.
func kept[T any](s []T) []T {
	if cap(s) > mostKept {
		return nil
	}
	return s[:0]
}

// find returns the position of a duplicate key, or a negative number.
func (f *keyFinder) find() (at int) {
	for i := 0; i < len(f.data); i++ {
		switch f.data[i] {
		case '{':
			f.opened = append(f.opened, len(f.keys))
		case '[':
			f.opened = append(f.opened, inArray)
		case ']', '}':
			if at, ok := f.close(); !ok || at >= 0 {
				return at
			}
		case '"':
			end := i + len(f.quoted(i))
			if f.isKey(end) {
				f.keys = append(f.keys, jsonKey{f.hash(f.data[i:end]), i})
			}
			i = end - 1
		}
		if len(f.opened) > jsonDepth {
			return -1 // which package json refuses
		}
	}
	return -1
}

// isKey reports whether the string that ends at end is the key of an object.
func (f *keyFinder) isKey(end int) bool {
	for ; end < len(f.data); end++ {
		switch f.data[end] {
		case ' ', '\t', '\r', '\n':
		case ':':
			return len(f.opened) > 0 && f.opened[len(f.opened)-1] != inArray
		default:
			return false
		}
	}
	return false
}

// quoted returns the string that begins at a quote.
func (f *keyFinder) quoted(at int) []byte {
	for i := at + 1; i < len(f.data); i++ {
		switch f.data[i] {
		case '"':
			return f.data[at : i+1]
		case '\\':
			i++
		}
	}
	return f.data[at:]
}

// close ends an array or an object, and returns the position of a duplicate key in it.
func (f *keyFinder) close() (at int, ok bool) {
	if len(f.opened) == 0 {
		return -1, false
	}
	last := len(f.opened) - 1
	from := f.opened[last]
	f.opened = f.opened[:last]
	if from == inArray {
		return -1, true
	}
	at = f.twice(f.keys[from:])
	f.keys = f.keys[:from]
	return at, true
}

const few = 16 // keys that are compared with each other

// twice returns the position of the second of two equal keys, or a negative number.
func (f *keyFinder) twice(keys []jsonKey) (at int) {
	if len(keys) > few {
		slices.SortFunc(keys, func(a, b jsonKey) int {
			return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.at, b.at))
		})
	}
	for i := range keys {
		for _, before := range keys[max(0, i-few):i] {
			if before.hash == keys[i].hash && bytes.Equal(f.name(f.quoted(before.at)), f.name(f.quoted(keys[i].at))) {
				return keys[i].at
			}
		}
	}
	return -1
}

func (f *keyFinder) hash(quoted []byte) uint64 { return maphash.Bytes(keySeed, f.name(quoted)) }

// name returns a key without its quotes and its escapes.
func (f *keyFinder) name(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1:max(1, len(quoted)-1)]
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // the decoder refuses a malformed key later
	return []byte(s)
}

func errKeyTwice(quoted []byte) error {
	return &ValueError{Reason: fmt.Sprintf("malformed JSON: an object has the key %s twice", truncate.Text(quoted, mostName))}
}
