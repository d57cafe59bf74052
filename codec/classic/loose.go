package classic

import (
	"bytes"
	"hash/maphash"
	"math"
	"slices"
)

// Values without a Go type are decoded in a loop, not by recursion: the original nests lists 1,000
// deep, and the stack for that would be a hundred times their content.

// openValue is an incomplete list, struct or map.
type openValue struct {
	parts []any     // the parts read so far of a list or a struct, with room for the rest
	more  *openMore // of a map or a struct
}

// frameSize is the memory of a frame, in a slice that grows.
const frameSize = 2 * 32

// openMore is the additional state of an incomplete map. A struct has its schema as a key.
type openMore struct {
	Map                // the complete entries; nil for a struct
	seen   encodedKeys // of those
	key    any         // of the next entry, if hasKey
	from   int         // where that key begins
	place  int32
	left   int32
	hasKey bool
}

// fewFrames frames are on the stack.
const fewFrames = 32

// loose reads a value of any type, which is nested depth deep.
func (d *decoder) loose(depth int) any {
	var few [fewFrames]openValue
	for frames := few[:0]; ; {
		if depth+len(frames) > MaxDepth {
			d.fail(tooDeep())
		}
		if d.err != nil || len(d.data) == 0 {
			return nil
		}
		v, f, isOpen := d.begin()
		if isOpen {
			frames = append(frames, f)
			continue
		}
		for isWhole := true; isWhole; {
			last := len(frames) - 1
			if last < 0 {
				return v
			}
			if v, isWhole = d.put(&frames[last], v); isWhole {
				frames[last] = openValue{}
				frames = frames[:last]
			}
		}
	}
}

// begin reads a value, or the head of a value that contains others.
func (d *decoder) begin() (v any, f openValue, isOpen bool) {
	switch tag := d.tag(); tag {
	case trueTag, falseTag:
		v = tag == trueTag
	case int8Tag:
		v = int8(d.integer(1))
	case int16Tag:
		v = int16(d.integer(2))
	case int32Tag:
		v = int32(d.integer(4))
	case int64Tag:
		v = d.integer(8)
	case float32Tag:
		v = math.Float32frombits(uint32(d.float(4)))
	case float64Tag:
		v = math.Float64frombits(d.float(8))
	case binaryTag:
		v = append([]byte{}, d.raw()...)
	case stringTag:
		v = text(d.raw())
	case uuidTag:
		v = d.uuid()
	case listTag, structTag, mapTag:
		return d.open(tag)
	}
	return v, f, false
}

// open reads the head of a value that contains others; it is complete if there are none.
func (d *decoder) open(tag byte) (v any, f openValue, isOpen bool) {
	n := 0
	switch tag {
	case mapTag:
		if n = d.count(); n == 0 {
			return Map{}, f, false
		}
		f.more = &openMore{Map: make(Map, 0, n), left: int32(n), from: d.itemReader.at}
	case listTag:
		n = d.count()
		f.parts = make([]any, 0, n)
	default:
		f.more = &openMore{key: text(d.raw())}
		n = d.fields()
		f.parts = make([]any, 0, n)
	}
	if n == 0 {
		return f.whole(), f, false
	}
	return nil, f, true
}

// whole returns the value of a complete f.
func (f *openValue) whole() any {
	switch {
	case f.more == nil:
		return f.parts
	case f.parts == nil:
		return f.more.Map
	}
	return Struct{Schema: f.more.key.(string), Fields: f.parts}
}

// put adds the next part of f, which d has just read, and returns f as a value when it is complete.
func (d *decoder) put(f *openValue, part any) (v any, isWhole bool) {
	if f.parts == nil {
		isWhole = d.putEntry(f.more, part)
	} else {
		f.parts = append(f.parts, part)
		isWhole = len(f.parts) == cap(f.parts)
	}
	if isWhole {
		v = f.whole()
	}
	return v, isWhole
}

// putEntry adds a key or a value. If several entries have equal keys, the last one counts, in the
// place of the first.
func (d *decoder) putEntry(m *openMore, part any) (isWhole bool) {
	if m.hasKey = !m.hasKey; m.hasKey {
		m.key, m.place = part, int32(m.seen.add(d.input[m.from:d.itemReader.at], cap(m.Map)))
		return false
	}
	if e := (Entry{m.key, part}); int(m.place) < len(m.Map) {
		m.Map[m.place] = e
	} else {
		m.Map = append(m.Map, e)
	}
	m.left--
	m.from = d.itemReader.at
	return m.left == 0
}

// encodedKeys are the encoded keys of a map. They are found by hash because copies would be
// expensive if keys are maps themselves.
type encodedKeys struct {
	place map[uint64]int // of the first key with each hash
	all   [][]byte       // parts of the value that is decoded
}

var keySeed = maphash.MakeSeed()

// add returns the place of a key, which is behind all others if it is new. most is the number of
// entries.
func (k *encodedKeys) add(key []byte, most int) int {
	if k.place == nil {
		k.place = make(map[uint64]int, most)
	}
	hash := maphash.Bytes(keySeed, key)
	if first, ok := k.place[hash]; !ok {
		k.place[hash] = len(k.all)
	} else if i := slices.IndexFunc(k.all[first:], func(b []byte) bool { return bytes.Equal(b, key) }); i >= 0 {
		return first + i
	}
	k.all = append(k.all, key)
	return len(k.all) - 1
}
