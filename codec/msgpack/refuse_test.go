package msgpack_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/msgpack"
)

type unknown struct{ A int }

// onlyAsValues are errors that occur only when the item is decoded as a value.
var onlyAsValues = map[string]bool{"a key twice": true, "the key of a map": true, "a timestamp is none": true}

// Malformed data is a ValueError.
func TestDecode_Malformed(t *testing.T) {
	deep := strings.Repeat("\x91", 33) + "\x01"
	for _, tt := range []struct{ name, data, want string }{
		{"nothing", "", "ends in the middle"},
		{"bytes behind it", "\x01\x01", "bytes come after the value"},
		{"the byte that begins nothing", "\xc1", "c1 begins nothing"},
		{"an integer cut off", "\xcf\x00", "ends in the middle"},
		{"a string cut off", "\xa3ab", "ends in the middle"},
		{"a string of 4 GiB", "\xdb\xff\xff\xff\xffab", "ends in the middle"},
		{"bytes of 4 GiB", "\xc6\xff\xff\xff\xffab", "ends in the middle"},
		{"an array of 2^32-1", "\xdd\xff\xff\xff\xff\x01", "ends in the middle"},
		{"a map of 2^32-1", "\xdf\xff\xff\xff\xff\x01\x01", "ends in the middle"},
		{"a map of 2^31", "\xdf\x80\x00\x00\x00\x01\x01", "ends in the middle"},
		{"an ext of 4 GiB", "\xc9\xff\xff\xff\xff\x05ab", "ends in the middle"},
		{"an ext cut off", "\xd4", "ends in the middle"},
		{"an ext without content", "\xd8\x05", "ends in the middle"},
		{"a length cut off", "\xdc\x00", "ends in the middle"},
		{"33 deep", deep, "more than 32 deep"},
		{"maps that are 33 deep", strings.Repeat("\x81\x01", 33) + "\x01", "more than 32 deep"},
		{"no UTF-8", "\xa2\xc3\x28", "not UTF-8"},
		{"no UTF-8 within", "\x91\xa1\xff", "not UTF-8"},
		{"a key that is no UTF-8", "\x81\xa1\xff\x01", "not UTF-8"},
		{"a key twice", "\x82\x01\x01\x01\x02", "a key twice"},
		{"a key twice in two forms", "\x82\xa1a\x01\xd9\x01a\x02", "a key twice"},
		{"a number twice in two forms", "\x82\x05\x01\xcc\x05\x02", "a key twice"},
		{"an array as key", "\x81\x90\x01", "the key of a map"},
		{"bytes as key", "\x81\xc4\x01a\x01", "the key of a map"},
		{"an ext as key", "\x81\xd4\x05\x01\x01", "the key of a map"},
		{"a timestamp of two bytes", "\xd5\xff\x00\x00", "a timestamp is none"},
		{"a timestamp without bytes", "\xc7\x00\xff", "a timestamp is none"},
		{"a second of 2^30 nanoseconds", "\xd7\xff\xff\xff\xff\xfc\x00\x00\x00\x00", "a timestamp is none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := msgpack.Values.Decode([]byte(tt.data), new(any))
			var ve *codec.ValueError
			require.ErrorAs(t, err, &ve)
			require.Contains(t, ve.Text(), "malformed MessagePack: ")
			require.Contains(t, ve.Text(), tt.want)
			if !onlyAsValues[tt.want] {
				require.Error(t, msgpack.Values.Decode([]byte("\x81\xa1?"+tt.data), new(unknown)), "where it is ignored, too")
			}
		})
	}
	require.NoError(t, msgpack.Values.Decode([]byte(deep[1:]), new(any)), "32 deep")
}

// A duplicate key is refused everywhere.
func TestDecode_DuplicateKey(t *testing.T) {
	type two struct{ A, B int }
	wide := reflect.New(reflect.StructOf(func() (f []reflect.StructField) {
		for i := range 40 {
			f = append(f, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[int]()})
		}
		return f
	}())).Interface()
	for _, tt := range []struct {
		data string
		into any
	}{
		{"\x82\xa1A\x01\xa1A\x01", new(two)},
		{"\x82\xa1A\x01\xd9\x01A\x01", new(two)},
		{"\x83\xa1?\x01\xa1A\x01\xa1?\x01", new(two)},
		{"\x82\x05\x01\x05\x01", new(two)},
		{"\x82\xa3F39\x01\xa3F39\x01", wide},
		{"\x82\x01\xa0\x01\xa0", new(map[int]string)},
		{"\x82\x01\xa0\xcc\x01\xa0", new(map[uint8]string)},
		{"\x82\x01\xa0\xca\x3f\x80\x00\x00\xa0", new(map[float64]string)},
	} {
		require.ErrorContains(t, msgpack.Values.Decode([]byte(tt.data), tt.into), "a key twice", "%q", tt.data)
	}
	require.NoError(t, msgpack.Values.Decode([]byte("\x82\xa2F0\x01\xa3F39\x02"), wide))
}

type (
	span struct {
		N    int8           `msgpack:"n"`
		At   time.Time      `msgpack:"at,omitzero"`
		Tags []string       `msgpack:"tags,omitempty"`
		By   map[string]int `msgpack:"by,omitempty"`
	}
	request struct {
		Window span            `msgpack:"window"`
		Spans  []*span         `msgpack:"spans,omitempty"`
		Days   map[int]float64 `msgpack:"days,omitempty"`
		Blob   []byte          `msgpack:"blob,omitempty"`
	}
	picky struct{ Word string }
)

var errPicky = errors.New("codec.picky wants struct{...}, int64 or main.word")

func (p *picky) UnmarshalMsg([]byte) ([]byte, error) { return nil, errPicky }
func (p picky) MarshalMsg(b []byte) ([]byte, error)  { return msgp.AppendString(b, "picky"), nil }
func (p picky) String() string                       { return p.Word }
func encoded(t *testing.T, v any) []byte {
	b, err := msgpack.Values.Append(nil, v)
	require.NoError(t, err)
	return b
}

// A mismatch is reported with its place.
func TestMismatch_NamesPlace(t *testing.T) {
	for _, c := range []struct {
		data, into any
		want       string
	}{
		{map[string]any{"window": map[string]any{"n": "x"}}, new(request), "at .window.n: an integer was expected, and a string came"},
		{map[string]any{"window": map[string]any{"n": 300}}, new(request), "at .window.n: an integer of 8 bits was expected, and 300 came"},
		{map[string]any{"window": map[string]any{"at": true}}, new(request), "at .window.at: a timestamp was expected, and a bool came"},
		{map[string]any{"spans": []any{map[string]any{}, nil, map[string]any{"tags": []any{"a", 1}}}}, new(request), "at .spans[2].tags[1]: a string was expected, and an integer came"},
		{map[string]any{"window": map[string]any{"by": map[string]any{"k\n": []byte{1}}}}, new(request), `at .window.by["k\n"]: an integer was expected, and a binary string came`},
		{map[string]any{"days": map[int]any{-3: "x"}}, new(request), "at .days[-3]: a float was expected, and a string came"},
		{map[string]any{"days": map[string]any{"x": 1.}}, new(request), "at .days[key of entry 0]: an integer was expected, and a string came"},
		{map[string]any{"blob": "text"}, new(request), "at .blob: a binary string was expected, and a string came"},
		{[]byte("bytes"), new(string), "a string was expected, and a binary string came"},
		{[]any{1, picky{}}, new([]picky), "at [0]: a value in a form of its own was expected, and an integer came"},
		{msgpack.Ext{Type: 100}, new(string), "a string was expected, and extension type 100 came"},
		{time.Unix(1, 0), new(int), "an integer was expected, and a timestamp came"},
		{1, new(time.Time), "a timestamp was expected, and an integer came"},
		{-1, new(uint16), "an integer of 16 bits from 0 on was expected, and -1 came"},
		{uint64(math.MaxUint64), new(int64), "an integer of 64 bits was expected, and 18446744073709551615 came"},
		{1e300, new(float32), "a float was expected, and one that does not fit came"},
		{"", new(request), "a map was expected, and a string came"},
		{[]int{1, 2, 3}, new([2]int), "an array was expected, and one that does not fit came"},
		{[]byte{1, 2, 3}, new([2]byte), "a binary string was expected, and one that does not fit came"},
		{[]int{1}, new([]byte), "a binary string was expected, and an array came"},
		{1, new(fmt.Stringer), "nothing was expected, and an integer came"},
	} {
		var e *codec.TypeError
		require.ErrorAs(t, msgpack.Values.Decode(encoded(t, c.data), c.into), &e, c.want)
		require.Equal(t, c.want, e.Text())
		require.Error(t, e.Err, "what Go says")
	}
}

// ofGo matches text that must not be sent to the peer.
var ofGo = regexp.MustCompile(`struct|interface|u?int(8|16|32|64|ptr)\b|float(32|64)|\bfunc\b|\bchan\b|\*|map\[|\[\]|msgp\b|Unmarshal|main\.|codec\.|asterisque\.|big\.|time\.|reflect|span|request|picky`)

var samples = []any{
	true, int8(-5), 300, uint64(1 << 63), float32(1.5), 1e300, "text", []byte("bytes"), []int{1, 300}, []any{1, "a", nil, []any{}}, map[string]int{"a": 1},
	map[string]any{"n": "x", "a": []any{1}}, time.Unix(1, 2).UTC(), big.NewInt(5), span{N: 3, Tags: []string{"x"}, By: map[string]int{"k": 2}},
	request{Spans: []*span{{N: 1}}, Blob: []byte{1}}, picky{}, [2]string{"a", "b"}, [][]byte{{1}}, []picky{{}}, []*picky{nil, {}}, map[string]picky{"p": {}},
	msgpack.Ext{Type: 3, Data: []byte{1}}, []time.Time{{}}, msgp.Raw{0x01},
}

var intos = []reflect.Type{
	reflect.TypeFor[float32](), reflect.TypeFor[uint16](), reflect.TypeFor[uintptr](), reflect.TypeFor[[4]byte](), reflect.TypeFor[[2]int](), reflect.TypeFor[map[int]bool](),
	reflect.TypeFor[map[picky]int](), reflect.TypeFor[**int64](), reflect.TypeFor[*request](), reflect.TypeFor[any](), reflect.TypeFor[error](), reflect.TypeFor[chan int](),
	reflect.TypeFor[func()](), reflect.TypeFor[complex128](), reflect.TypeFor[time.Duration](), reflect.TypeFor[struct{ F func() }](), reflect.TypeFor[[]error](),
	reflect.TypeFor[map[any]int](), reflect.TypeFor[big.Int](), reflect.TypeFor[*failing](), reflect.TypeFor[map[[1]any]int](),
}

// TestMismatch_NoGoTypes decodes every sample as every type: no error text has Go types.
func TestMismatch_NoGoTypes(t *testing.T) {
	types := intos
	for _, v := range samples {
		types = append(types, reflect.TypeOf(v))
	}
	failed := 0
	for _, v := range samples {
		for _, as := range types {
			err := msgpack.Values.Decode(encoded(t, v), reflect.New(as).Interface())
			if err == nil {
				continue
			}
			failed++
			var text interface{ Text() string }
			require.ErrorAs(t, err, &text)
			require.False(t, ofGo.MatchString(text.Text()), "%T as %v: %s", v, as, text.Text())
			require.LessOrEqual(t, len(text.Text()), codec.MaxReason)
		}
	}
	require.Greater(t, failed, 500)
}

// A long path leaves room for the rest of the error text.
func TestMismatch_LongPath(t *testing.T) {
	type deep map[string]deep
	data := []byte("\x01")
	for range 30 {
		data = append([]byte("\x81\xd9\x40"+strings.Repeat("k", 64)), data...)
	}
	var e *codec.TypeError
	require.ErrorAs(t, msgpack.Values.Decode(data, new(deep)), &e)
	require.Regexp(t, `^at ….*: a map was expected, and an integer came$`, e.Text())
	require.LessOrEqual(t, len(e.Text()), codec.MaxReason)
}
