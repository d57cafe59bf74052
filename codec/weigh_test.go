package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/cborhead"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// The types for which the tests weigh data.
type (
	record struct {
		ID    int64  `cbor:"id" json:"id"`
		Name  string `cbor:"name" json:"name"`
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
		Own  []int64 `cbor:"own" json:"own"`
		Skip []wide  `cbor:"-" json:"-"`
	}
	numbered struct {
		A []int64 `cbor:"1,keyasint"`
		B []wide  `cbor:"-2,keyasint"`
	}
	row struct {
		_ struct{} `cbor:",toarray"`
		A int
		B []wide
	}
	own struct{ S []byte }
)

func (o *own) UnmarshalCBOR(b []byte) error { o.S = bytes.Clone(b); return nil }
func (o *own) UnmarshalJSON(b []byte) error { o.S = bytes.Clone(b); return nil }

// shape is data and a type to decode it into.
type shape struct {
	name string
	as   reflect.Type
	data []byte
}

// repeated returns a CBOR array of n items.
func repeated(n int, each string) []byte {
	return append(cborhead.AppendHead(nil, cborhead.Array, uint64(n)), strings.Repeat(each, n)...)
}

// endless returns a CBOR array of indefinite length.
func endless(n int, each string) []byte {
	return append(append([]byte{cborhead.Array | indefinite}, strings.Repeat(each, n)...), breakByte)
}

// mapOf returns a CBOR map with n integer keys.
func mapOf(n int, value string) []byte {
	b := cborhead.AppendHead(nil, cborhead.Map, uint64(n))
	for i := range n {
		b = append(cborhead.AppendUint(b, uint64(i)), value...)
	}
	return b
}

func as[T any](name string, data []byte) shape { return shape{name, reflect.TypeFor[T](), data} }

func cborShapes() []shape {
	const n = 4000
	records := make([]record, 5000)
	for i := range records {
		records[i] = record{ID: int64(i), Name: fmt.Sprint("name of ", i), Tags: []string{"a", "bc"}, Score: 1, Data: make([]byte, 20)}
	}
	honest, _ := CBOR.Append(nil, records)
	var deep []byte
	for range 30 {
		deep = append(deep, "\xa1\x64Next"...)
	}
	deep = append(deep, cborhead.Null)
	return []shape{
		as[[]record]("records", honest),
		as[any]("records as any", honest),
		as[[]wide]("nulls as structs", repeated(n, "\xf6")),
		as[[]*wide]("empty maps as pointers to structs", repeated(n, "\xa0")),
		as[[]**wide]("pointers to pointers", repeated(n, "\xa0")),
		as[[][2]wide]("nulls as arrays", repeated(n, "\xf6")),
		as[[][]byte]("byte strings", repeated(n, "\x41a")),
		as[[]string]("texts", repeated(n, "\x71"+strings.Repeat("x", 17))),
		as[[]string]("texts in pieces", repeated(n, "\x7f\x61a\x61b\xff")),
		as[[]wide]("endless nulls", endless(n, "\xf6")),
		as[any]("nulls", repeated(n, "\xf6")),
		as[any]("endless", endless(n, "\xf6")),
		as[any]("numbers", repeated(n, "\x19\x03\xe8")),
		as[any]("negative numbers", repeated(n, "\x20")),
		as[any]("half floats", repeated(n, "\xf9\x3c\x01")),
		as[any]("large negative numbers", repeated(n, "\x3b\xff\xff\xff\xff\xff\xff\xff\xff")),
		as[any]("bignums", repeated(n, "\xc2\x41\x05")),
		as[any]("negative bignums", repeated(n, "\xc3\x41\x05")),
		as[[]big.Int]("typed bignums", repeated(n, "\xc2\x41\x05")),
		as[[]*big.Int]("small numbers as big ones", repeated(n, "\x05")),
		as[any]("empty lists", repeated(n, "\x80")),
		as[any]("small lists", repeated(n, "\x81\xf6")),
		as[any]("empty maps", repeated(n, "\xa0")),
		as[any]("small maps", repeated(n, "\xa1\x01\x02")),
		as[any]("endless maps", repeated(n, "\xbf\x01\x02\xff")),
		as[any]("maps of nine", repeated(n/10, "\xa9\x01\x02\x02\x02\x03\x02\x04\x02\x05\x02\x06\x02\x07\x02\x08\x02\x09\x02")),
		as[any]("a map", mapOf(n, "\x02")),
		as[any]("a map of 1,000", mapOf(1000, "\x02")),
		as[any]("empty texts", repeated(n, "\x60")),
		as[any]("texts as any", repeated(n, "\x62ab")),
		as[any]("bytes as any", repeated(n, "\x41a")),
		as[any]("tags", repeated(n, "\xd8\x64\xf6")),
		as[any]("tags of tags", repeated(n, "\xd8\x64\xd8\x65\xd8\x66\x19\x03\xe8")),
		as[any]("self-described", repeated(n, "\xd9\xd9\xf7\x19\x03\xe8")),
		as[any]("numbers of seconds", repeated(n, "\xc1\x05")),
		as[any]("times", repeated(n, "\xc0\x78\x192013-03-21T20:04:00+01:07")),
		as[[]time.Time]("typed times", repeated(n, "\xc0\x78\x192013-03-21T20:04:00+01:07")),
		as[map[int64]wide]("a map of structs", mapOf(n, "\xf6")),
		as[map[int64][3]int64]("a map of arrays", mapOf(n, "\xf6")),
		as[map[any]any]("a typed map of any", mapOf(n, "\xf6")),
		as[[]map[int]int]("typed small maps", repeated(n, "\xa1\x01\x02")),
		as[[]map[int]int]("typed endless maps", repeated(n, "\xbf\x01\x02\xff")),
		as[[]map[string][20]int64]("maps of large arrays", repeated(n, "\xa1\x61a\xf6")),
		as[tree]("a chain", deep),
		as[[]tree]("trees", repeated(n, "\xa1\x68Children\x83\xa0\xa0\xa0")),
		as[inside]("embedded", append([]byte("\xa1\x62In"), repeated(n, "\xf6")...)),
		as[inside]("another case", append([]byte("\xa1\x62iN"), repeated(n, "\xf6")...)),
		as[inside]("a key in pieces", append([]byte("\xa1\x7f\x61I\x61n\xff"), repeated(n, "\xf6")...)),
		as[numbered]("a number as key", append([]byte("\xa1\x21"), repeated(n, "\xf6")...)),
		as[row]("as a list", append([]byte("\x82\x01"), repeated(n, "\xf6")...)),
		as[[]row]("lists of lists", repeated(n, "\x82\x01\x81\xf6")),
		as[[]own]("what decodes itself", repeated(n, "\x78\x30"+strings.Repeat("x", 48))),
		as[[]cbor.RawMessage]("raw", repeated(n, "\x83\x01\x02\x03")),
		as[[]cbor.Tag]("typed tags", repeated(n, "\xd8\x64\x81\xf6")),
	}
}

// list returns a JSON array of n values.
func list(n int, value string) []byte {
	return []byte("[" + strings.TrimSuffix(strings.Repeat(value+",", n), ",") + "]")
}

// object returns a JSON object with n fields.
func object(n int, value string) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",\"%d\":%s", i, value)
	}
	return []byte("{" + b.String()[1:] + "}")
}

func jsonShapes() []shape {
	const n = 4000
	records := make([]record, 5000)
	for i := range records {
		records[i] = record{ID: int64(i), Name: fmt.Sprint("name of ", i), Tags: []string{"a", "bc"}, Score: 1, Data: make([]byte, 20)}
	}
	honest, _ := JSON.Append(nil, records)
	return []shape{
		as[[]record]("records", honest),
		as[any]("records as any", honest),
		as[[]wide]("nulls as structs", list(n, "null")),
		as[[]wide]("empty objects as structs", list(n, "{}")),
		as[[]wide]("a few structs", list(513, "{}")),
		as[[]*wide]("empty objects as pointers", list(n, "{}")),
		as[[][2]wide]("arrays", list(n, "[]")),
		as[any]("nulls", list(n, "null")),
		as[any]("numbers", list(n, "7")),
		as[any]("empty lists", list(n, "[]")),
		as[any]("small lists", list(n, "[0]")),
		as[any]("empty objects", list(n, "{}")),
		as[any]("small objects", list(n, `{"":0}`)),
		as[any]("objects of nine", list(n/10, `{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0}`)),
		as[any]("an object", object(n, "0")),
		as[any]("an object of 1,000", object(1000, "0")),
		as[any]("empty texts", list(n, `""`)),
		as[any]("texts", list(n, `"ab"`)),
		as[[]string]("escapes", list(n, `"\u00e4\ud83d\ude00\n"`)),
		as[[]byte]("a list as bytes", list(n, "7")),
		as[[][]byte]("base64", list(n, `"YWJjZGVmZ2g="`)),
		as[[]int64]("integers", list(n, "7")),
		as[[]json.Number]("numbers as texts", list(n, "7123456789")),
		as[map[string]wide]("an object of structs", object(n, "null")),
		as[map[int]int]("keys that are numbers", object(n, "0")),
		as[[]map[string]int]("typed small objects", list(n, `{"a":0}`)),
		as[[]tree]("trees", list(n, `{"Children":[{},{},{}]}`)),
		as[[]tree]("chains", list(n, `{"Next":{"nExt":{"\u004eext":{}}}}`)),
		as[any]("deep lists", list(300, strings.Repeat("[", 30)+strings.Repeat("]", 30))),
		as[inside]("embedded", fmt.Appendf(nil, `{"In":%s}`, list(n, "{}"))),
		as[inside]("another case", fmt.Appendf(nil, `{ "iN" : %s }`, list(n, " {} "))),
		as[inside]("an escaped key", fmt.Appendf(nil, `{"\u0049n":%s}`, list(n, "{}"))),
		as[[]time.Time]("times", list(n, `"2013-03-21T20:04:00+01:07"`)),
		as[[]own]("what decodes itself", list(n, `"`+strings.Repeat("x", 46)+`"`)),
		as[[]json.RawMessage]("raw", list(n, "[1,2,3]")),
	}
}

// TestWeigh_HeapGrowth compares the estimate with the memory that decoded values hold.
func TestWeigh_HeapGrowth(t *testing.T) {
	for _, c := range []struct {
		values Values
		shapes []shape
	}{{CBOR, cborShapes()}, {JSON, jsonShapes()}} {
		for _, s := range c.shapes {
			t.Run(c.values.Name()+"/"+s.name, func(t *testing.T) { checkWeight(t, c.values, s) })
		}
	}
}

func checkWeight(t *testing.T, values Values, s shape) {
	const slack = 4 << 10
	estimate := values.(Weigher).Weigh(s.data, s.as, math.MaxInt)
	least, most := (estimate-slack)/3+1, estimate+estimate/4+slack
	v := reflect.New(s.as)
	grown := weightest.GrownWithin(least, most, func() any {
		v = reflect.New(s.as)
		_ = values.Decode(s.data, v.Interface())
		return v
	})
	t.Logf("%d bytes become %d, estimated %d: %.2f", len(s.data), grown, estimate, float64(estimate)/float64(grown))
	require.LessOrEqual(t, weightest.Held(v.Elem()), estimate)
	if !race.Enabled { // which adds to each object
		require.LessOrEqual(t, grown, most, "it is enough")
		require.GreaterOrEqual(t, grown, least, "and not absurd")
	}
}

// TestAttackWeigh_DeepValues counts the stack of the decoder for values that take little heap.
func TestAttackWeigh_DeepValues(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector needs more of it")
	}
	type node struct {
		Next *node
		List []node
		Map  map[string]node
	}
	const levels = 9000
	for _, s := range []shape{
		as[any]("lists", []byte(strings.Repeat("[", levels)+strings.Repeat("]", levels))),
		as[any]("objects", []byte(strings.Repeat(`{"":`, levels)+"0"+strings.Repeat("}", levels))),
		as[node]("pointers", []byte(strings.Repeat(`{"Next":`, levels)+"null"+strings.Repeat("}", levels))),
		as[node]("slices", []byte(strings.Repeat(`{"List":[`, levels/2)+strings.Repeat("]}", levels/2))),
		as[node]("maps", []byte(strings.Repeat(`{"Map":{"":`, levels/2)+"null"+strings.Repeat("}}", levels/2))),
		as[struct{}]("what is skipped", []byte(`{"":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+"}")),
	} {
		estimate, v := 0, reflect.New(s.as).Interface()
		weighing := weightest.Stack(func() { estimate = JSON.(Weigher).Weigh(s.data, s.as, math.MaxInt) })
		decoding := weightest.Stack(func() { require.NoError(t, JSON.Decode(s.data, v)) })
		t.Logf("%s: %d bytes take %d of stack to weigh, %d to decode, estimated %d", s.name, len(s.data), weighing, decoding, estimate)
		require.GreaterOrEqual(t, estimate, max(weighing, decoding), s.name)
		few := weightest.Stack(func() { JSON.(Weigher).Weigh(s.data, s.as, 32*len(s.data)) })
		require.LessOrEqual(t, few, 32*len(s.data), s.name)
	}
}

// checkMost checks that Weigh stops once its sum exceeds most, and not before.
func checkMost(t *testing.T, values Values, data []byte, as reflect.Type, most int) {
	w := values.(Weigher)
	all := w.Weigh(data, as, math.MaxInt)
	if n := w.Weigh(data, as, most); all > most {
		require.Greater(t, n, most)
		require.LessOrEqual(t, n, all)
	} else {
		require.Equal(t, all, n)
	}
}

// FuzzWeigh decodes any bytes into many types: no decoded value holds more memory than its
// estimate.
func FuzzWeigh(f *testing.F) {
	types := map[reflect.Type]int{}
	var list []reflect.Type
	add := func(as reflect.Type) int {
		if _, ok := types[as]; !ok {
			types[as] = len(list)
			list = append(list, as)
		}
		return types[as]
	}
	for _, s := range append(cborShapes(), jsonShapes()...) {
		add(s.as)
	}
	for _, s := range cborShapes() {
		f.Add(false, uint8(add(s.as)), s.data[:min(len(s.data), 400)], 100)
	}
	for _, s := range jsonShapes() {
		f.Add(true, uint8(add(s.as)), s.data[:min(len(s.data), 400)], 1000)
	}
	for i := range list { // small ones that are whole
		for _, seed := range []string{"\x83\xa0\xa1\x68Children\x82\xa0\xf6\xf6", "\xa2\x01\x9f\x01\xff\x21\x81\xf6", "\xbf\x7f\x62In\xff\x9f\xf6\xff\x60\x00\xff"} {
			f.Add(false, uint8(i), []byte(seed), 10)
		}
		for _, seed := range []string{`[{"In":[{}, null]},[[]],{"\u0049n":[0]}]`, `{"Next":{"Next":{"Children":[{"V":1}]}}}`, `[["a","\ud83d\ude00"],{"a":1,"b":{}},1.5,true]`} {
			f.Add(true, uint8(i), []byte(seed), 10)
		}
	}
	f.Fuzz(func(t *testing.T, asJSON bool, which uint8, data []byte, most int) {
		values, as := CBOR, int(which)%len(list)
		if asJSON {
			values = JSON
		}
		checkMost(t, values, data, list[as], most)
		v := reflect.New(list[as])
		_ = values.Decode(data, v.Interface())
		require.LessOrEqual(t, weightest.Held(v.Elem()), values.(Weigher).Weigh(data, list[as], math.MaxInt))
	})
}

// TestWeigh_Allocs weighs values of many elements without an allocation.
func TestWeigh_Allocs(t *testing.T) {
	for _, c := range []struct {
		values Weigher
		shapes []shape
	}{{CBOR.(Weigher), cborShapes()}, {JSON.(Weigher), jsonShapes()}} {
		for _, s := range c.shapes {
			require.LessOrEqual(t, testing.AllocsPerRun(3, func() { c.values.Weigh(s.data, s.as, math.MaxInt) }), 8.0, s.name)
		}
	}
}

// TestWeigh_NumbersInAny decodes without a type: Go has the smaller numbers preallocated.
func TestWeigh_NumbersInAny(t *testing.T) {
	weighs := func(data string) int {
		return CBOR.(Weigher).Weigh([]byte(data), reflect.TypeFor[any](), math.MaxInt)
	}
	small := weighs("\x81\x00")
	require.Equal(t, small, weighs("\x81\x18\xff"))
	require.Equal(t, small+8, weighs("\x81\x19\x01\x00"))
	require.Equal(t, small+8, weighs("\x81\x20"), "minus one")
}
