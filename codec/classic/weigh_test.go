package classic_test

import (
	"math"
	"math/bits"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
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

// shape is data and a type to decode it into.
type shape struct {
	name string
	as   reflect.Type
	data []byte
}

func into[T any](name, data string) shape { return shape{name, reflect.TypeFor[T](), []byte(data)} }

func shapes(form classic.Codec) []shape {
	const n = 4000
	var entries strings.Builder
	for i := range n {
		entries.WriteString(counted(form, "\x04", i, "") + "\x00") // a count is an int16
	}
	object := counted(form, mapping, n, "") + entries.String()
	return []shape{
		into[[]wide]("nulls as structs", counted(form, list, n, "\x00")),
		into[[]*chain]("structs", counted(form, list, n, sized(form, "\x22", "chain")+"\x03\x03\x01\x00\x00")),
		into[any]("nulls", counted(form, list, n, "\x00")),
		into[any]("bools", counted(form, list, n, "\x01")),
		into[any]("numbers", counted(form, list, n, "\x03\x01")),
		into[any]("empty lists", counted(form, list, n, counted(form, list, 0, ""))),
		into[any]("empty maps", counted(form, list, n, counted(form, mapping, 0, ""))),
		into[any]("small maps", counted(form, list, n, counted(form, mapping, 1, "\x03\x01\x00"))),
		into[any]("structs without a type", counted(form, list, n, sized(form, "\x22", "")+"\x01\x00")),
		into[any]("a map", object),
		into[map[int16]*wide]("a typed map of nulls", object),
		into[map[int16]wide]("a typed map", object),
		into[[]map[int8]int8]("small typed maps", counted(form, list, n, counted(form, mapping, 1, "\x03\x01\x00"))),
		into[[]string]("texts", counted(form, list, n, sized(form, "\x0b", strings.Repeat("x", 17)))),
		into[[]string]("no UTF-8", counted(form, list, n, sized(form, "\x0b", strings.Repeat("\xff", 8)))),
		into[any]("bytes", counted(form, list, n, sized(form, "\x0a", "abc"))),
		into[any]("uuids", counted(form, list, n, string(recoded(form, "\x0c"+strings.Repeat("x", 16))))),
		into[any]("parameters", counted(form, params, n, "\x03\x01")),
		into[classic.Params]("parameters of any type", counted(form, params, n, "\x03\x01")),
		into[spread]("parameters as fields", counted(form, params, 2, "")+"\x03\x01"+counted(form, list, n, "\x00")),
		into[*[]wide]("one parameter", counted(form, params, 1, "")+counted(form, list, n, "\x00")),
		into[chain]("a chain", chained(form, 30)),
	}
}

func chained(form classic.Codec, n int) string {
	return strings.Repeat(sized(form, "\x22", "chain")+"\x03\x03\x01", n) + "\x00" + strings.Repeat("\x00", n)
}

// TestAttackWeigh_DeepValues counts the stack of the decoder for values that take little heap.
func TestAttackWeigh_DeepValues(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector needs more of it")
	}
	eachCodec(t, deepValuesCountTheStackOfTheirDecoder)
}

func deepValuesCountTheStackOfTheirDecoder(t *testing.T, form classic.Codec) {
	const levels = classic.MaxDepth - 2
	for _, s := range []shape{
		into[chain]("a chain", chained(form, levels/2)),
		into[any]("lists", strings.Repeat(counted(form, list, 1, ""), levels)+counted(form, list, 0, "")),
		into[any]("maps", strings.Repeat(counted(form, mapping, 1, "\x00"), levels)+counted(form, mapping, 0, "")),
		into[any]("structs", strings.Repeat(sized(form, "\x22", "")+"\x01", levels)+"\x00"),
	} {
		estimate, v := 0, reflect.New(s.as).Interface()
		weighing := weightest.Stack(func() { estimate = form.Weigh(s.data, s.as, math.MaxInt) })
		decoding := weightest.Stack(func() { require.NoError(t, form.Decode(s.data, v)) })
		t.Logf("%s: %d bytes take %d of stack to weigh, %d to decode, estimated %d", s.name, len(s.data), weighing, decoding, estimate)
		require.GreaterOrEqual(t, estimate, max(weighing, decoding), s.name)
	}
}

// TestWeigh_HeapGrowth compares the estimate with the memory that decoded values hold.
func TestWeigh_HeapGrowth(t *testing.T) {
	eachCodec(t, weighIsWhatTheHeapGrowsBy)
}

func weighIsWhatTheHeapGrowsBy(t *testing.T, form classic.Codec) {
	const slack = 4 << 10
	const words = 64 / bits.UintSize // the estimate reckons with pointers of 64 bits
	for _, s := range shapes(form) {
		t.Run(s.name, func(t *testing.T) {
			estimate := form.Weigh(s.data, s.as, math.MaxInt)
			least, most := (estimate-slack)/(4*words)+1, estimate+estimate/4+slack
			v := reflect.New(s.as)
			grown := weightest.GrownWithin(least, most, func() any {
				v = reflect.New(s.as)
				require.NoError(t, form.Decode(s.data, v.Interface()))
				return v
			})
			t.Logf("%d bytes become %d, estimated %d: %.2f", len(s.data), grown, estimate, float64(estimate)/float64(grown))
			require.LessOrEqual(t, weightest.Held(v.Elem()), estimate)
			if !race.Enabled { // which adds to each object
				require.LessOrEqual(t, grown, most, "it is enough")
				require.GreaterOrEqual(t, grown, least, "and not absurd")
			}
		})
	}
}

// TestWeigh_DuplicateKeys counts the memory of the search for duplicate keys, in a map of many
// small entries.
func TestWeigh_DuplicateKeys(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		const n = 4000
		data := counted(form, mapping, n, "")
		for i := range n {
			data += counted(form, "\x04", i, "") + "\x00"
		}
		// bytes of two interface values, of two slice headers, and of a position
		const entry, key, place = 32, 48, 16
		require.Greater(t, form.Weigh([]byte(data), reflect.TypeFor[any](), math.MaxInt), n*(entry+key+place+place/2))
	})
}

// FuzzWeigh decodes any bytes into many types: no decoded value holds more memory than its
// estimate.
func FuzzWeigh(f *testing.F) {
	for _, form := range codecs {
		for i, s := range shapes(form) {
			f.Add(uint8(form), uint8(i), s.data[:min(len(s.data), 200)], 100)
			f.Add(uint8(form), uint8(i), []byte(counted(form, list, 2, counted(form, mapping, 1, "\x03\x01"+counted(form, list, 1, "\x00")))), 10)
			f.Add(uint8(form), uint8(i), []byte(counted(form, params, 2, counted(form, list, 2, "\x00"))), 10)
		}
	}
	types := shapes(classic.Simple)
	f.Fuzz(func(t *testing.T, codec, which uint8, data []byte, most int) {
		form, as := codecs[int(codec)%len(codecs)], types[int(which)%len(types)].as
		estimate := form.Weigh(data, as, math.MaxInt)
		if n := form.Weigh(data, as, most); estimate > most {
			require.Greater(t, n, most)
		} else {
			require.Equal(t, estimate, n)
		}
		v := reflect.New(as)
		_ = form.Decode(data, v.Interface())
		require.LessOrEqual(t, weightest.Held(v.Elem()), estimate)
	})
}
