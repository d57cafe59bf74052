package classic

import (
	"bytes"
	"hash/maphash"
	"reflect"
	"slices"

	"github.com/asterisque-go/asterisque/codec"
)

// mapping reads a map into a Map or a Go map.
func (d *decoder) mapping(to reflect.Value, depth int) {
	n := d.count()
	if to.Type() == mapType {
		to.Set(reflect.ValueOf(d.ordered(n, depth)))
	} else {
		d.goMap(to, n, depth)
	}
}

// ordered reads n entries. Of those with equal keys, the last one counts, in the place of the first.
func (d *decoder) ordered(n, depth int) Map {
	m := make(Map, 0, n)
	seen := keys{seed: maphash.MakeSeed(), place: make(map[uint64]int, n)}
	for range n {
		before := d.data
		var e Entry
		d.value(reflect.ValueOf(&e.Key).Elem(), depth+1)
		i := seen.add(before[:len(before)-len(d.data)])
		d.value(reflect.ValueOf(&e.Value).Elem(), depth+1)
		if d.err != nil {
			return nil
		}
		if i < len(m) {
			m[i] = e
		} else {
			m = append(m, e)
		}
	}
	return m
}

// keys are the encoded keys of a map. They are found by hash because copies would cost much where keys are maps themselves.
type keys struct {
	seed  maphash.Seed
	place map[uint64]int // of the first key with each hash
	all   [][]byte       // parts of what is being decoded
}

// add returns the place of a key, which is behind all others if it is new.
func (k *keys) add(key []byte) int {
	hash := maphash.Bytes(k.seed, key)
	if first, ok := k.place[hash]; !ok {
		k.place[hash] = len(k.all)
	} else if i := slices.IndexFunc(k.all[first:], func(b []byte) bool { return bytes.Equal(b, key) }); i >= 0 {
		return first + i
	}
	k.all = append(k.all, key)
	return len(k.all) - 1
}

func (d *decoder) goMap(to reflect.Value, n, depth int) {
	m := reflect.MakeMapWithSize(to.Type(), n)
	for range n {
		key, value := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
		d.value(key, depth+1)
		d.value(value, depth+1)
		if d.err != nil {
			return
		}
		if !key.Comparable() {
			d.fail(&codec.TypeError{Want: to.Type().String(), Got: "classic map with a key that Go cannot compare; decode it as classic.Map"})
			return
		}
		m.SetMapIndex(key, value)
	}
	to.Set(m)
}
