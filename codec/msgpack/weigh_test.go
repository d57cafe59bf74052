package msgpack_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/msgpack"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// The types for which the tests weigh data.
type (
	record struct {
		ID    int64  `msgpack:"id"`
		Name  string `msgpack:"name"`
		Note  *string
		Tags  []string
		Score float64
		Data  []byte
	}
	wide struct { // 256 bytes from one
		A, B, C, D [8]int64
	}
	tree struct {
		V        int
		Children []*tree
		Next     *tree
	}
	Base   struct{ In []wide }
	inside struct {
		*Base
		Own  []int64 `msgpack:"own"`
		Skip []wide  `msgpack:"-"`
	}
	own struct{ S []byte }
)

func (o *own) UnmarshalMsg(b []byte) ([]byte, error) { o.S = bytes.Clone(b); return nil, nil }

// shape is data and a type to decode it into.
type shape struct {
	name    string
	as      reflect.Type
	data    []byte
	passing bool // most of it is held for a while only
}

func as[T any](name string, data []byte) shape {
	return shape{name: name, as: reflect.TypeFor[T](), data: data}
}

// repeated returns an array of n items.
func repeated(n int, each string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n)), strings.Repeat(each, n)...)
}

// mapOf returns a map with n integer keys.
func mapOf(n int, value string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0xdf}, uint32(n))
	for i := range n {
		b = append(msgp.AppendInt(b, i), value...)
	}
	return b
}

// named returns a map with n text keys.
func named(n int, value string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0xdf}, uint32(n))
	for i := range n {
		b = append(msgp.AppendString(b, fmt.Sprint(i)), value...)
	}
	return b
}

func shapes() []shape {
	const n = 4000
	records := make([]record, 5000)
	for i := range records {
		records[i] = record{ID: int64(i), Name: fmt.Sprint("name of ", i), Tags: []string{"a", "bc"}, Score: 1, Data: make([]byte, 20)}
	}
	honest, _ := msgpack.Values.Append(nil, records)
	unknown := as[record]("keys that are not known", named(n, "\x01"))
	unknown.passing = true
	return []shape{
		unknown,
		as[[]record]("records", honest),
		as[any]("records as any", honest),
		as[[]wide]("nils as structs", repeated(n, "\xc0")),
		as[[]*wide]("empty maps as pointers to structs", repeated(n, "\x80")),
		as[[]**wide]("pointers to pointers", repeated(n, "\x80")),
		as[[][2]wide]("nils as arrays", repeated(n, "\xc0")),
		as[[][]byte]("bytes", repeated(n, "\xc4\x01a")),
		as[[]string]("texts", repeated(n, "\xb1"+strings.Repeat("x", 17))),
		as[any]("nils", repeated(n, "\xc0")),
		as[any]("small numbers", repeated(n, "\x07")),
		as[any]("numbers", repeated(n, "\xcd\x03\xe8")),
		as[any]("negative numbers", repeated(n, "\xff")),
		as[any]("large numbers", repeated(n, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff")),
		as[any]("floats of 32 bits", repeated(n, "\xca\x3f\x80\x00\x01")),
		as[any]("floats", repeated(n, "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00")),
		as[[]big.Int]("numbers as big ones", repeated(n, "\xcd\x03\xe8")),
		as[[]*big.Int]("small numbers as big ones", repeated(n, "\x05")),
		as[any]("empty lists", repeated(n, "\x90")),
		as[any]("small lists", repeated(n, "\x91\xc0")),
		as[any]("empty maps", repeated(n, "\x80")),
		as[any]("small maps", repeated(n, "\x81\x01\x02")),
		as[any]("maps of nine", repeated(n/10, "\x89\x01\x02\x02\x02\x03\x02\x04\x02\x05\x02\x06\x02\x07\x02\x08\x02\x09\x02")),
		as[any]("a map", mapOf(n, "\x02")),
		as[any]("a map of 1,000", mapOf(1000, "\x02")),
		as[any]("a map of texts", named(n, "\x02")),
		as[any]("empty texts", repeated(n, "\xa0")),
		as[any]("texts as any", repeated(n, "\xa2ab")),
		as[any]("bytes as any", repeated(n, "\xc4\x01a")),
		as[any]("extensions", repeated(n, "\xd4\x05\x01")),
		as[any]("empty extensions", repeated(n, "\xc7\x00\x05")),
		as[[]msgpack.Ext]("typed extensions", repeated(n, "\xd8\x05"+strings.Repeat("x", 16))),
		as[any]("times", repeated(n, "\xd6\xff\x00\x00\x00\x01")),
		as[[]time.Time]("typed times", repeated(n, "\xd6\xff\x00\x00\x00\x01")),
		as[[]*time.Time]("pointers to times", repeated(n, "\xd6\xff\x00\x00\x00\x01")),
		as[map[int64]wide]("a map of structs", mapOf(n, "\xc0")),
		as[map[int64][3]int64]("a map of arrays", mapOf(n, "\xc0")),
		as[map[any]any]("a typed map of any", mapOf(n, "\xc0")),
		as[[]map[int]int]("typed small maps", repeated(n, "\x81\x01\x02")),
		as[[]map[string][20]int64]("maps of large arrays", repeated(n, "\x81\xa1a\xc0")),
		as[tree]("a chain", []byte(strings.Repeat("\x81\xa4Next", 30)+"\xc0")),
		as[[]tree]("trees", repeated(n, "\x81\xa8Children\x93\x80\x80\x80")),
		as[inside]("embedded", append([]byte("\x81\xa2In"), repeated(n, "\xc0")...)),
		as[inside]("what is skipped", append([]byte("\x81\xa4Skip"), repeated(n, "\xc0")...)),
		as[[]own]("what decodes itself", repeated(n, "\xd9\x30"+strings.Repeat("x", 48))),
		as[[]msgp.Raw]("raw", repeated(n, "\x93\x01\x02\x03")),
	}
}

// TestWeigh_HeapGrowth compares the estimate with the memory that decoded values hold.
func TestWeigh_HeapGrowth(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			const slack = 4 << 10
			const words = 64 / bits.UintSize // the estimate reckons with pointers of 64 bits
			estimate := msgpack.Values.(codec.Weigher).Weigh(s.data, s.as, math.MaxInt)
			least, most := (estimate-slack)/(3*words)+1, estimate+estimate/4+slack
			if s.passing {
				least = math.MinInt
			}
			v := reflect.New(s.as)
			require.NoError(t, msgpack.Values.Decode([]byte{0xc0}, reflect.New(s.as).Interface()), "its plan is made")
			grown := weightest.GrownWithin(least, most, func() any {
				v = reflect.New(s.as)
				require.NoError(t, msgpack.Values.Decode(s.data, v.Interface()))
				return v
			})
			t.Logf("%d bytes become %d, estimated %d: %.2f", len(s.data), grown, estimate, float64(estimate)/float64(grown))
			require.LessOrEqual(t, weightest.Held(v.Elem()), estimate)
			if race.Enabled { // which adds to each object
				return
			}
			require.LessOrEqual(t, grown, most, "it is enough")
			require.GreaterOrEqual(t, grown, least, "and not absurd")
		})
	}
}

// FuzzWeigh decodes arbitrary bytes as many types: it does not panic, and the decoded values never
// hold more than the estimate. A value decoded as any is encoded and decoded again as the same.
func FuzzWeigh(f *testing.F) {
	types := map[reflect.Type]bool{}
	var list []reflect.Type
	for _, s := range shapes() {
		if !types[s.as] {
			types[s.as] = true
			list = append(list, s.as)
		}
		for i, as := range list {
			if as == s.as {
				f.Add(uint8(i), s.data[:min(len(s.data), 400)], 100)
			}
		}
	}
	list = append(list, intos...)
	list = append(list, reflect.TypeFor[order](), reflect.TypeFor[request]())
	for i := range list { // small ones that are whole
		for _, seed := range []string{
			"\x93\x80\x81\xa8Children\x92\x80\xc0\xc0", "\x82\xa2In\x91\xc0\xa0\x00", "\x84\xa6window\x81\xa1n\x05\xa4blob\xc4\x01a\xa4days\x81\x01\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xa2at\xd6\xff\x00\x00\x00\x01",
			"\x95\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xd4\x05\x01\xc7\x0c\xff\x00\x00\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff\xd1\xff\x00\xda\x00\x01a",
		} {
			f.Add(uint8(i), []byte(seed), 10)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte, most int) {
		as := list[int(which)%len(list)]
		v := reflect.New(as)
		w := msgpack.Values.(codec.Weigher)
		all := w.Weigh(data, as, math.MaxInt)
		if n := w.Weigh(data, as, most); all > most {
			require.Greater(t, n, most)
			require.LessOrEqual(t, n, all)
		} else {
			require.Equal(t, all, n)
		}
		err := msgpack.Values.Decode(data, v.Interface())
		require.LessOrEqual(t, weightest.Held(v.Elem()), all)
		if err != nil {
			var text interface{ Text() string }
			require.ErrorAs(t, err, &text)
			return
		}
		if as == reflect.TypeFor[any]() {
			requireTheSameAgain(t, v.Elem().Interface())
		}
	})
}

func requireTheSameAgain(t *testing.T, v any) {
	data, err := msgpack.Values.Append(nil, v)
	require.NoError(t, err)
	var again any
	require.NoError(t, msgpack.Values.Decode(data, &again))
	require.Equal(t, fmt.Sprintf("%#v", v), fmt.Sprintf("%#v", again)) // of NaN, too
}

// TestWeigh_Allocs requires that weighing does not allocate.
func TestWeigh_Allocs(t *testing.T) {
	for _, s := range shapes() {
		require.LessOrEqual(t, testing.AllocsPerRun(3, func() { msgpack.Values.(codec.Weigher).Weigh(s.data, s.as, math.MaxInt) }), 2.0, s.name)
	}
}
