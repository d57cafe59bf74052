package msgpack_test

import (
	"errors"
	"math"
	"math/big"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/msgpack"
)

type (
	Common struct {
		At   time.Time `msgpack:"at"`
		Note *string   `json:"note,omitempty"`
	}
	Pointed struct{ Deep int }
	order   struct {
		Common
		*Pointed
		ID     int64              `msgpack:"id" json:"other"`
		Small  uint8              `cbor:"s"`
		Price  float32            `msgpack:"price,omitempty"`
		Names  []string           `msgpack:"names"`
		Stock  map[string]int     `msgpack:"stock,omitempty"`
		Data   []byte             `msgpack:"data"`
		Hash   [4]byte            `msgpack:"hash"`
		Pair   [2]int             `msgpack:"pair,omitzero"`
		Rates  map[int8][]float64 `msgpack:"rates,omitempty"`
		Raw    msgp.Raw           `msgpack:"raw,omitempty"`
		Ext    *msgpack.Ext       `msgpack:"ext,omitempty"`
		Big    *big.Int           `msgpack:"big,omitempty"`
		Where  *url.URL           `msgpack:"where,omitempty"`
		Next   *order             `msgpack:"next,omitempty"`
		Any    any                `msgpack:"any,omitempty"`
		Hidden chan int           `msgpack:"-"`
	}
)

func roundTrip[T any](t *testing.T, want T) {
	t.Helper()
	data, err := msgpack.Values.Append([]byte("before"), want)
	require.NoError(t, err)
	require.Equal(t, "before", string(data[:6]))
	var got T
	require.NoError(t, msgpack.Values.Decode(data[6:], &got))
	require.Equal(t, want, got)
	clear(data)
	require.Equal(t, want, got, "it keeps no part of the data")
}

// Values arrive as they were sent.
func TestValues_RoundTrip(t *testing.T) {
	note, at := "ß", time.Date(2024, 2, 29, 12, 30, 1, 123456789, time.UTC)
	where, err := url.Parse("https://example.org/a?b")
	require.NoError(t, err)
	full := order{
		Common: Common{At: at, Note: &note}, Pointed: &Pointed{5}, ID: math.MinInt64, Small: 200, Price: 1.5, Names: []string{"", "<a>"},
		Stock: map[string]int{"x": -1}, Data: []byte{0, 255}, Hash: [4]byte{1, 2, 3, 4}, Pair: [2]int{7, 300}, Rates: map[int8][]float64{-3: {0.1, math.Inf(1)}},
		Raw: msgp.Raw{0x93, 1, 2, 3}, Ext: &msgpack.Ext{Type: 7, Data: []byte("abc")}, Big: big.NewInt(-70000), Where: where,
		Next: &order{Names: []string{"next"}}, Any: map[any]any{"a": []any{int64(1), uint64(math.MaxUint64), float32(1.5), 2.5, nil, true, "s", []byte{1}, at, msgpack.Ext{Type: 9, Data: []byte{}}}},
	}
	full.Next.At = time.Unix(0, 0).UTC()
	roundTrip(t, full)
	roundTrip(t, []any{nil, int64(-1)})
	roundTrip(t, map[any]any{int64(1): "a", true: nil, 1.5: "b", nil: "c"})
	roundTrip(t, [][]byte{{}, {1}})
	roundTrip(t, make([]string, 70_000))
	roundTrip(t, [3]bool{true, false, true})
	roundTrip(t, struct{}{})
	roundTrip(t, []*int(nil))
	roundTrip(t, map[[2]int]string{{1, 2}: "x"})
	for _, n := range []int{0, 1, 31, 32, 255, 256, 65535, 65536} {
		roundTrip(t, string(make([]byte, n)))
		roundTrip(t, make([]byte, n))
		roundTrip(t, msgpack.Ext{Type: -128, Data: make([]byte, n)})
		roundTrip(t, make([]any, n))
	}
}

// Plain types have the same encoding on both paths.
func TestValues_BothPaths(t *testing.T) {
	type (
		text  string
		bytes []byte
		truth bool
		whole int
		long  int64
		count uint64
		real  float64
	)
	for _, pair := range [][2]any{
		{"a", text("a")}, {[]byte("b"), bytes("b")}, {[]byte(nil), bytes(nil)}, {true, truth(true)}, {128, whole(128)}, {int64(-33), long(-33)},
		{uint64(1 << 63), count(1 << 63)}, {1.5, real(1.5)}, {math.NaN(), real(math.NaN())},
	} {
		plain, err := msgpack.Values.Append(nil, pair[0])
		require.NoError(t, err)
		other, err := msgpack.Values.Append(nil, pair[1])
		require.NoError(t, err)
		require.Equal(t, other, plain)
		pointer := reflect.New(reflect.TypeOf(pair[0]))
		pointer.Elem().Set(reflect.ValueOf(pair[0]))
		pointed, err := msgpack.Values.Append(nil, pointer.Interface())
		require.NoError(t, err)
		require.Equal(t, plain, pointed)
		a, b := reflect.New(reflect.TypeOf(pair[0])), reflect.New(reflect.TypeOf(pair[1]))
		require.NoError(t, msgpack.Values.Decode(plain, a.Interface()))
		require.NoError(t, msgpack.Values.Decode(plain, b.Interface()))
		if f, ok := pair[0].(float64); !ok || f == f {
			require.Equal(t, pair[0], a.Elem().Interface())
			require.Equal(t, pair[1], b.Elem().Interface())
		}
	}
}

// Times are read in all three forms.
func TestTime_ThreeForms(t *testing.T) {
	for data, want := range map[string]time.Time{
		"\xd6\xff\x00\x00\x00\x01":                                          time.Unix(1, 0),
		"\xd7\xff\x00\x00\x00\x08\x00\x00\x00\x01":                          time.Unix(1, 2),
		"\xc7\x0c\xff\x00\x00\x00\x02" + "\xff\xff\xff\xff\xff\xff\xff\xff": time.Unix(-1, 2),
		"\xc7\x08\xff\x00\x00\x00\x08\x00\x00\x00\x01":                      time.Unix(1, 2),
	} {
		var got time.Time
		require.NoError(t, msgpack.Values.Decode([]byte(data), &got))
		require.Equal(t, want.UTC(), got)
		var free any
		require.NoError(t, msgpack.Values.Decode([]byte(data), &free))
		require.Equal(t, want.UTC(), free)
		var ext msgpack.Ext
		require.NoError(t, msgpack.Values.Decode([]byte(data), &ext), "a declared Ext receives the bytes")
		require.EqualValues(t, -1, ext.Type)
	}
	for _, at := range []time.Time{
		time.Unix(0, 0), time.Unix(1<<32, 0), time.Unix(1<<34-1, 999999999), time.Unix(1<<34, 1), time.Unix(-1, 1), {},
		time.Date(-5000, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)),
	} {
		roundTrip(t, at.UTC())
	}
}

// A nil leaves a value without a nil unchanged.
func TestNil_LeavesValues(t *testing.T) {
	n, p, s, m, free := 5, new(int), []int{1}, map[string]int{"a": 1}, any(1)
	for _, v := range []any{&n, &p, &s, &m, &free} {
		require.NoError(t, msgpack.Values.Decode([]byte{0xc0}, v))
	}
	require.Equal(t, 5, n)
	require.Nil(t, p)
	require.Nil(t, s)
	require.Nil(t, m)
	require.Nil(t, free)
}

// Decoding into a map keeps its other entries.
func TestMap_KeepsEntries(t *testing.T) {
	m := map[string]int{"a": 1, "b": 2}
	require.NoError(t, msgpack.Values.Decode([]byte("\x81\xa1a\x07"), &m))
	require.Equal(t, map[string]int{"a": 7, "b": 2}, m)
}

// Fields are matched only by their exact names.
func TestStruct_ExactNames(t *testing.T) {
	type point struct {
		X int `msgpack:"x"`
		Y int
	}
	data, err := msgpack.Values.Append(nil, map[string]any{"x": 1, "X": "another", "y": []any{map[string]int{"z": 1}}, "Y": 2})
	require.NoError(t, err)
	var p point
	require.NoError(t, msgpack.Values.Decode(data, &p))
	require.Equal(t, point{1, 2}, p)
}

// A struct with CBOR tags only is encoded under the names of its fields.
func TestStruct_CBORTags(t *testing.T) {
	type both struct {
		_ struct{} `cbor:",toarray"`
		A int      `cbor:"1,keyasint"`
	}
	data, err := msgpack.Values.Append(nil, both{A: 5})
	require.NoError(t, err)
	require.Equal(t, "\x81\xa1A\x05", string(data))
}

var errFailing = errors.New("no")

type failing struct{}

func (failing) MarshalBinary() ([]byte, error)  { return nil, errFailing }
func (*failing) UnmarshalBinary(_ []byte) error { return errFailing }

// After an error, Append returns dst unchanged.
func TestAppend_AfterError(t *testing.T) {
	var cycle struct{ Next any }
	cycle.Next = &cycle
	for _, v := range []any{make(chan int), []any{1, func() {}}, struct{ C complex64 }{}} {
		data, err := msgpack.Values.Append([]byte("before"), v)
		require.Equal(t, "before", string(data))
		var te *codec.TypeError
		require.ErrorAs(t, err, &te)
		require.Contains(t, te.Text(), "a value that MessagePack can hold was expected, and another one came")
		require.Error(t, te.Err)
	}
	for want, v := range map[string]any{
		"more than 64 bits": new(big.Int).Lsh(big.NewInt(1), 64),
		"not UTF-8":         "\xff",
		"nested":            &cycle,
		"no":                failing{},
	} {
		data, err := msgpack.Values.Append([]byte("before"), v)
		require.Equal(t, "before", string(data))
		var ve *codec.ValueError
		require.ErrorAs(t, err, &ve)
		require.ErrorContains(t, err, want)
	}
	_, err := msgpack.Values.Append(nil, failing{})
	require.ErrorIs(t, err, errFailing)
	require.ErrorIs(t, msgpack.Values.Decode([]byte("\xc4\x00"), &failing{}), errFailing)
}

// Decode into a value other than a pointer is an error.
func TestDecode_NoPointer(t *testing.T) {
	for _, v := range []any{nil, "string", 1, (*string)(nil), (*int)(nil), (*[]byte)(nil), (*order)(nil)} {
		require.Error(t, msgpack.Values.Decode([]byte("\xa1a"), v), "%T", v)
	}
}
