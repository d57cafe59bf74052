package classic

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/cut"
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

// ordered reads n entries. Of those with equal keys, the last one counts, in the place of the
// first.
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

// keys are the encoded keys of a map. They are found by hash because copies would cost much where
// keys are maps themselves.
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

// nameOf names the i-th value of a map by its key.
func nameOf(key reflect.Value, i int) string {
	switch {
	case key.Kind() == reflect.String:
		return fmt.Sprintf("[%q]", cut.Text(key.String(), 64))
	case key.CanInt():
		return fmt.Sprintf("[%d]", key.Int())
	}
	return fmt.Sprintf("[of entry %d]", i)
}

func (d *decoder) goMap(to reflect.Value, n, depth int) {
	m := reflect.MakeMapWithSize(to.Type(), n)
	for i := range n {
		key, value := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
		if d.value(key, depth+1); d.err != nil {
			d.failedWithin(fmt.Sprintf("[key of entry %d]", i))
			return
		}
		if d.value(value, depth+1); d.err != nil {
			d.failedWithin(nameOf(key, i))
			return
		}
		if !key.Comparable() {
			d.fail(&codec.TypeError{
				Want: "a map with plain keys", Got: "one with lists, maps or structs as keys",
				Err: fmt.Errorf("it cannot be stored in a %v, but in a classic.Map", to.Type()),
			})
			return
		}
		m.SetMapIndex(key, value)
	}
	to.Set(m)
}
