package classic_test

import (
	"encoding/binary"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/race"
	"github.com/asterisque-go/asterisque/internal/weightest"
)

type (
	wide  struct{ A, B, C, D [8]int64 }
	chain struct {
		_    struct{} `classic:"chain"`
		V    int8
		Next *chain
		All  []*chain
	}
	spread struct {
		A int8
		B []wide
	}
)

// shape is data, and the type that it is decoded as.
type shape struct {
	name string
	as   reflect.Type
	data []byte
}

func into[T any](name, data string) shape { return shape{name, reflect.TypeFor[T](), []byte(data)} }

// counted returns what has a tag and n items of the same form.
func counted(tag string, n int, item string) string {
	return tag + string(binary.BigEndian.AppendUint16(nil, uint16(n))) + strings.Repeat(item, n)
}

// Tags of the format.
const list, mapping, params = "\x20", "\x21", "("

func shapes() []shape {
	const n = 4000
	var entries strings.Builder
	for i := range n {
		entries.WriteString("\x04" + string(binary.BigEndian.AppendUint16(nil, uint16(i))) + "\x00")
	}
	object := mapping + "\x0f\xa0" + entries.String()
	return []shape{
		into[[]wide]("nulls as structs", counted(list, n, "\x00")),
		into[[]*chain]("structs", counted(list, n, "\x22\x00\x05chain\x03\x03\x01\x00\x00")),
		into[any]("nulls", counted(list, n, "\x00")),
		into[any]("bools", counted(list, n, "\x01")),
		into[any]("numbers", counted(list, n, "\x03\x01")),
		into[any]("empty lists", counted(list, n, counted(list, 0, ""))),
		into[any]("empty maps", counted(list, n, counted(mapping, 0, ""))),
		into[any]("small maps", counted(list, n, counted(mapping, 1, "\x03\x01\x00"))),
		into[any]("structs without a type", counted(list, n, "\x22\x00\x00\x01\x00")),
		into[any]("a map", object),
		into[map[int16]*wide]("a typed map of nulls", object),
		into[map[int16]wide]("a typed map", object),
		into[[]map[int8]int8]("small typed maps", counted(list, n, counted(mapping, 1, "\x03\x01\x00"))),
		into[[]string]("texts", counted(list, n, "\x0b\x00\x11"+strings.Repeat("x", 17))),
		into[[]string]("no UTF-8", counted(list, n, "\x0b\x00\x08"+strings.Repeat("\xff", 8))),
		into[any]("bytes", counted(list, n, "\x0a\x00\x03abc")),
		into[any]("uuids", counted(list, n, "\x0c"+strings.Repeat("x", 16))),
		into[any]("parameters", counted(params, n, "\x03\x01")),
		into[classic.Params]("parameters of any type", counted(params, n, "\x03\x01")),
		into[spread]("parameters as fields", "(\x00\x02\x03\x01"+counted(list, n, "\x00")),
		into[*[]wide]("one parameter", "(\x00\x01"+counted(list, n, "\x00")),
		into[chain]("a chain", chained(30)),
	}
}

func chained(n int) string {
	return strings.Repeat("\x22\x00\x05chain\x03\x03\x01", n) + "\x00" + strings.Repeat("\x00", n)
}

// TestAttackWithDeepValuesCountsTheStackOfTheirDecoder has values that take little heap.
func TestAttackWithDeepValuesCountsTheStackOfTheirDecoder(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector needs more of it")
	}
	const levels = classic.MaxDepth - 2
	for _, s := range []shape{
		into[chain]("a chain", chained(levels/2)),
		into[any]("lists", strings.Repeat(counted(list, 1, ""), levels)+counted(list, 0, "")),
		into[any]("maps", strings.Repeat(counted(mapping, 1, "\x00"), levels)+counted(mapping, 0, "")),
		into[any]("structs", strings.Repeat("\x22\x00\x00\x01", levels)+"\x00"),
	} {
		estimate, v := 0, reflect.New(s.as).Interface()
		weighing := weightest.Stack(func() { estimate = weigh(s.data, s.as, math.MaxInt) })
		decoding := weightest.Stack(func() { require.NoError(t, classic.Values.Decode(s.data, v)) })
		t.Logf("%s: %d bytes take %d of stack to weigh, %d to decode, estimated %d", s.name, len(s.data), weighing, decoding, estimate)
		require.GreaterOrEqual(t, estimate, max(weighing, decoding), s.name)
	}
}

// TestWeighIsWhatTheHeapGrowsBy compares the estimate with what decoded values really hold.
func TestWeighIsWhatTheHeapGrowsBy(t *testing.T) {
	const slack = 4 << 10
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			v := reflect.New(s.as)
			var err error
			grown := weightest.Grown(func() any {
				err = classic.Values.Decode(s.data, v.Interface())
				return v
			})
			require.NoError(t, err)
			estimate := weigh(s.data, s.as, math.MaxInt)
			t.Logf("%d bytes become %d, estimated %d: %.2f", len(s.data), grown, estimate, float64(estimate)/float64(grown))
			require.LessOrEqual(t, weightest.Held(v.Elem()), estimate)
			if !race.Enabled { // which adds to each object
				require.LessOrEqual(t, float64(grown), 1.25*float64(estimate)+slack, "it is enough")
				require.LessOrEqual(t, float64(estimate), 4*float64(grown)+slack, "and not absurd")
			}
		})
	}
}

// TestKeysThatComeTwiceAreLookedForInMemoryThatCounts has a map of many small entries.
func TestKeysThatComeTwiceAreLookedForInMemoryThatCounts(t *testing.T) {
	const n = 4000
	var entries strings.Builder
	for i := range n {
		entries.WriteString("\x04" + string(binary.BigEndian.AppendUint16(nil, uint16(i))) + "\x00")
	}
	data := []byte(mapping + string(binary.BigEndian.AppendUint16(nil, n)) + entries.String())
	const entry, key, place = 32, 48, 16 // two interfaces, two headers of its bytes, where it is
	require.Greater(t, weigh(data, reflect.TypeFor[any](), math.MaxInt), n*(entry+key+place+place/2))
}

func weigh(data []byte, as reflect.Type, most int) int {
	return classic.Values.(codec.Weigher).Weigh(data, as, most)
}

// FuzzWeigh decodes any bytes as many types: what they become never holds more than was estimated.
func FuzzWeigh(f *testing.F) {
	all := shapes()
	for i, s := range all {
		f.Add(uint8(i), s.data[:min(len(s.data), 200)], 100)
		f.Add(uint8(i), []byte(counted(list, 2, counted(mapping, 1, "\x03\x01"+counted(list, 1, "\x00")))), 10)
		f.Add(uint8(i), []byte(counted(params, 2, counted(list, 2, "\x00"))), 10)
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte, most int) {
		as := all[int(which)%len(all)].as
		estimate := weigh(data, as, math.MaxInt)
		if n := weigh(data, as, most); estimate > most {
			require.Greater(t, n, most)
		} else {
			require.Equal(t, estimate, n)
		}
		v := reflect.New(as)
		_ = classic.Values.Decode(data, v.Interface())
		require.LessOrEqual(t, weightest.Held(v.Elem()), estimate)
	})
}
