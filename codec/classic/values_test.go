package classic_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
)

type (
	star   string
	shade  uint8
	shades []shade
	key16  [16]byte
	pair   struct{ A, B int32 }
	tagged struct {
		_    struct{} `classic:"com.example.Point"`
		X, Y int32
		Memo string `classic:"-"`
	}
	nested struct {
		Point *tagged
		List  []pair
		Map   map[string]int8
		Any   any
	}
	void struct{}
)

// roundTrip encodes v and decodes it as a T.
func roundTrip[T any](t testing.TB, v any) (got T, b []byte) {
	t.Helper()
	b, err := classic.Values.Append(nil, v)
	require.NoError(t, err)
	require.NoError(t, classic.Values.Decode(b, &got))
	return got, b
}

func requireSame[T any](t testing.TB, v T, want string) {
	t.Helper()
	got, b := roundTrip[T](t, v)
	require.Equal(t, v, got)
	require.Equal(t, want, fmt.Sprintf("%x", b))
	_, again := roundTrip[T](t, &v)
	require.Equal(t, b, again, "a pointer is what it points to")
}

func TestTheTableOfTypes(t *testing.T) {
	requireSame[any](t, nil, "00")
	requireSame[*int](t, nil, "00")
	requireSame(t, true, "01")
	requireSame(t, false, "02")
	requireSame(t, int8(-1), "03ff")
	requireSame(t, int16(-2), "04fffe")
	requireSame(t, int32(3), "0500000003")
	requireSame(t, int64(4), "060000000000000004")
	requireSame(t, -5, "06fffffffffffffffb")
	requireSame(t, time.Second, "06000000003b9aca00")
	requireSame(t, uint8(200), "0400c8")
	requireSame(t, uint16(65535), "050000ffff")
	requireSame(t, uint32(math.MaxUint32), "0600000000ffffffff")
	requireSame(t, uint64(math.MaxInt64), "067fffffffffffffff")
	requireSame(t, uint(7), "060000000000000007")
	requireSame(t, float32(0.5), "073f000000")
	type half float32
	requireSame(t, half(0.5), "073f000000")
	requireSame(t, 0.25, "083fd0000000000000")
	requireSame(t, "日本", "0b0006e697a5e69cac")
	requireSame(t, star("x"), "0b000178")
	requireSame(t, []byte{1, 2}, "0a00020102")
	requireSame(t, shades{1, 2}, "0a00020102")
	requireSame(t, [3]byte{1, 2, 3}, "0a0003010203")
	requireSame(t, classic.UUID{1, 15: 2}, "0c01000000000000000000000000000002")
	requireSame(t, key16{1}, "0c01000000000000000000000000000000")
	requireSame(t, []string{"a", "b"}, "2000020b0001610b000162")
	requireSame(t, [2]int8{1, 2}, "20000203010302")
	requireSame(t, map[string]int8{"b": 2, "a": 1}, "2100020b00016103010b0001620302")
	requireSame(t, pair{1, 2}, "220000020500000001"+"0500000002")
	requireSame(t, tagged{X: 1, Y: 2}, "220011636f6d2e6578616d706c652e506f696e74020500000001"+"0500000002")
	requireSame(t, void{}, "22000000") // which becomes no parameters, or null
	requireSame(t, []void{{}, {}}, "2000020000")
	requireSame(t, map[string]*void{"a": nil}, "2100010b00016100")
	requireSame(t, classic.Struct{Schema: "void", Fields: []any{}}, "220004766f696400")
	requireSame(t, classic.Struct{Schema: "S", Fields: []any{"x", nil}}, "22000153020b00017800")
	requireSame(t, classic.Map{{Key: "a", Value: int8(1)}, {Key: nil, Value: []any{}}}, "2100020b00016103010020"+"0000")
	requireSame(t, nested{Point: &tagged{X: 1}, List: []pair{{1, 2}}, Map: map[string]int8{"k": 1}, Any: "any"},
		"22000004"+"220011636f6d2e6578616d706c652e506f696e74020500000001"+"0500000000"+"200001220000020500000001"+"0500000002"+"2100010b00016b03010b0003616e79")
}

func TestNilsAndNonsense(t *testing.T) {
	_, b := roundTrip[[]string](t, []string(nil))
	require.Equal(t, []byte{0x20, 0, 0}, b, "an empty list")
	_, b = roundTrip[map[string]int](t, map[string]int(nil))
	require.Equal(t, []byte{0x21, 0, 0}, b, "an empty map")
	_, b = roundTrip[[]byte](t, []byte(nil))
	require.Equal(t, []byte{0x0a, 0, 0}, b, "an empty binary")
	s, _ := roundTrip[string](t, "a\xffb")
	require.Equal(t, "a\uFFFDb", s)

	odd := []byte{0x07, 0x7f, 0xa0, 0, 1} // a NaN that a conversion would change
	var nan float32
	require.NoError(t, classic.Values.Decode(odd, &nan))
	again, err := classic.Values.Append(nil, nan)
	require.NoError(t, err)
	require.Equal(t, odd, again)

	p := pair{1, 2}
	require.NoError(t, classic.Values.Decode([]byte{0}, &p))
	require.Zero(t, p, "null is the zero value")
	list := classic.Params{1}
	got, b := roundTrip[[][]any](t, [][]any{list})
	require.Equal(t, byte(0x20), b[3], "Params inside a value are a list")
	require.Equal(t, [][]any{{int64(1)}}, got)
}

func TestNumbersAreDecodedAsWhateverHoldsThem(t *testing.T) {
	for _, c := range []struct {
		v    any
		to   func(b []byte) (any, error)
		want any // nil: a TypeError
	}{
		{int64(127), as[int8], int8(127)},
		{int64(128), as[int8], nil},
		{int8(-1), as[uint64], nil},
		{int32(70000), as[uint16], nil},
		{int16(255), as[uint8], uint8(255)},
		{int32(1 << 24), as[float32], float32(1 << 24)},
		{int32(1<<24 + 1), as[float32], nil},
		{int64(1 << 53), as[float64], float64(1 << 53)},
		{int64(1<<53 + 1), as[float64], nil},
		{float32(0.5), as[float64], 0.5},
		{0.5, as[float32], float32(0.5)},
		{0.1, as[float32], nil},
		{1.0, as[int], nil},
		{"1", as[int], nil},
		{1, as[string], nil},
		{true, as[int], nil},
		{[]byte("x"), as[string], nil},
		{"x", as[[]byte], nil},
		{[]int{1}, as[[]byte], nil},
		{[]byte{1}, as[[]int], nil},
		{[]byte{1}, as[[2]byte], nil},
		{[]int{1}, as[[2]int], nil},
		{[]int{1}, as[map[int]int], nil},
		{[]int{1}, as[classic.Map], nil},
		{map[int]int{}, as[[]int], nil},
		{classic.UUID{}, as[[]byte], nil},
		{[]byte{15: 1}, as[classic.UUID], nil},
		{pair{}, as[struct{ A int32 }], nil},
		{pair{}, as[tagged], nil},
		{tagged{X: 1}, as[pair], pair{A: 1}}, // which has no schema of its own
		{pair{}, as[map[string]int], nil},
		{time.Second, as[string], nil},
		{1, as[fmt.Stringer], nil},
		{classic.Map{{Key: "a", Value: "b"}}, as[map[string]int], nil},
		{classic.Map{{Key: []int{1}, Value: 1}}, as[map[any]any], nil},
	} {
		b, err := classic.Values.Append(nil, c.v)
		require.NoError(t, err)
		got, err := c.to(b)
		if c.want == nil {
			var mismatch *codec.TypeError
			require.ErrorAs(t, err, &mismatch, "%T %v", c.v, c.v)
			require.NotContains(t, mismatch.Text(), "classic.", "the peer is told nothing of Go")
			require.ErrorContains(t, mismatch.Err, "cannot be stored in")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

func as[T any](b []byte) (any, error) {
	var v T
	err := classic.Values.Decode(b, &v)
	return v, err
}

func TestWhatTheFormatCannotHoldIsRefused(t *testing.T) {
	type loop struct{ Next *loop }
	endless := &loop{}
	endless.Next = endless
	var mismatch *codec.TypeError
	for _, v := range []any{make(chan int), func() {}, complex(1, 1), time.Now(), []any{struct{ hidden int }{}}, map[string]any{"x": make(chan int)}} {
		b, err := classic.Values.Append([]byte("before"), v)
		require.ErrorAs(t, err, &mismatch, "%T", v)
		require.Equal(t, "before", string(b))
	}
	for _, v := range []any{strings.Repeat("x", 65536), make([]byte, 65536), make([]int8, 65536), classic.Params(make([]any, 65536)), uint64(1 << 63), endless,
		make(classic.Map, 65536), map[any]any{endless: 1}, classic.Struct{Fields: make([]any, 256)}, classic.Struct{Schema: strings.Repeat("x", 65536)}} {
		_, err := classic.Values.Append(nil, v)
		require.ErrorIs(t, err, codec.ErrTooLarge, "%T", v)
	}
	require.ErrorAs(t, classic.Values.Decode([]byte{0}, 5), &mismatch)
	require.ErrorAs(t, classic.Values.Decode([]byte{0}, (*int)(nil)), &mismatch)
	for _, b := range []string{"", "\x03", "\x09", "\x00\x00", "\x20\x00\x02\x00", "\x21\x00\x01\x00", "\x22\x00\x00\x01", "\x28", "\x28\x00\x01", "\x28\x00\x00\x00"} {
		var v any
		require.ErrorIs(t, classic.Values.Decode([]byte(b), &v), codec.ErrProtocol, "%x", b)
		_, err := classic.ResultOf([]byte(b))
		require.True(t, b == "" || err != nil, "%x", b)
		if _, _, err := classic.SplitParams([]byte(b)); b != "" {
			require.ErrorIs(t, err, codec.ErrProtocol, "%x", b)
		}
	}
}

func TestValuesAreNestedAsDeepAsAllowed(t *testing.T) {
	list := func(depth int) []byte { return append(bytes.Repeat([]byte{0x20, 0, 1}, depth), 0) }
	var v any
	require.NoError(t, classic.Values.Decode(list(classic.MaxDepth), &v))
	b, err := classic.Values.Append(nil, v)
	require.NoError(t, err)
	require.Equal(t, list(classic.MaxDepth), b)
	_, err = classic.Values.Append(nil, []any{v})
	require.ErrorIs(t, err, codec.ErrTooLarge)
	require.ErrorIs(t, classic.Values.Decode(list(classic.MaxDepth+1), &v), codec.ErrTooLarge)
}

// call takes the parameter of a function from one side to the other, and returns how many
// parameters it had on the way.
func call[T any](t testing.TB, v any) (got T, count uint16, err error) {
	b, err := classic.Values.Append(nil, v)
	require.NoError(t, err)
	count, params, err := classic.SplitParams(b)
	require.NoError(t, err)
	return got, count, classic.Values.Decode(classic.JoinParams(nil, &classic.Open{Count: count, Params: params}), &got)
}

func requireCall[T any](t testing.TB, v T, want uint16) {
	t.Helper()
	got, count, err := call[T](t, &v)
	require.NoError(t, err)
	require.Equal(t, v, got)
	require.Equal(t, want, count)
}

func TestHowAParameterBecomesParameters(t *testing.T) {
	requireCall(t, void{}, 0)
	requireCall(t, struct{}{}, 0)
	requireCall(t, &struct{}{}, 0)
	requireCall(t, classic.Struct{Schema: "void", Fields: []any{}}, 1)
	requireCall(t, "x", 1)
	requireCall(t, 5, 1)
	requireCall(t, []string{"a", "b"}, 1)
	requireCall(t, []byte("ab"), 1)
	requireCall(t, map[string]string{"a": "b"}, 1)
	requireCall(t, tagged{X: 1, Y: 2}, 1)
	requireCall(t, pair{1, 2}, 2)
	requireCall(t, &pair{1, 2}, 2)
	requireCall[*pair](t, nil, 1)
	requireCall(t, nested{Point: &tagged{}, List: []pair{}, Map: map[string]int8{}}, 4)
	requireCall(t, classic.Params{}, 0)
	requireCall(t, classic.Params{"a", int8(1), nil}, 3)
	requireCall(t, classic.Struct{Schema: "S", Fields: []any{"x"}}, 1)

	got, count, err := call[any](t, "x")
	require.NoError(t, err)
	require.EqualValues(t, 1, count)
	require.Equal(t, classic.Params{"x"}, got, "any receives Params")
	for _, v := range []any{pair{}, void{}, classic.Params{1, 2, 3}} {
		_, _, err := call[string](t, v)
		var mismatch *codec.TypeError
		require.ErrorAs(t, err, &mismatch)
		require.Equal(t, "a call with 1 parameter", mismatch.Want)
	}
	_, _, err = call[pair](t, "x")
	require.ErrorContains(t, err, "a call with 2 parameters was expected, and one with 1 came: they are stored in a classic_test.pair")
	type self *self
	_, _, err = call[self](t, classic.Params{1, 2})
	require.Error(t, err, "a type that points to itself")

	b, err := classic.ResultOf([]byte("\x28\x00\x01\x00"))
	require.NoError(t, err)
	require.Equal(t, "\x20\x00\x01\x00", string(b), "Params as a result are a list")
	b, err = classic.ResultOf(nil)
	require.NoError(t, err)
	require.Equal(t, []byte{0}, b)
}

func TestAResultOfNothingIsTheNullOfTheOriginal(t *testing.T) {
	for name, v := range map[string]any{"struct{}": struct{}{}, "of a name": void{}, "a pointer": &void{}, "nil": nil, "a nil pointer": (*void)(nil)} {
		b, err := classic.Values.Append(nil, v)
		require.NoError(t, err)
		b, err = classic.ResultOf(b)
		require.NoError(t, err)
		require.Equal(t, []byte{0}, b, name)
	}
	unit, err := classic.Values.Append(nil, classic.Struct{Schema: "void"})
	require.NoError(t, err)
	same, err := classic.ResultOf(bytes.Clone(unit))
	require.NoError(t, err)
	require.Equal(t, unit, same, "who wants the struct gets it")
	for _, b := range [][]byte{{0}, unit} {
		got := &void{}
		require.NoError(t, classic.Values.Decode(b, &got))
		var value void
		require.NoError(t, classic.Values.Decode(b, &value))
		require.Error(t, classic.Values.Decode([]byte{0x01}, &value), "something is not nothing")
	}
	var nothing any = "something"
	require.NoError(t, classic.Values.Decode([]byte{0}, &nothing))
	require.Nil(t, nothing)
}

func TestOfEqualKeysTheLastOneCounts(t *testing.T) {
	twice := []byte("\x21\x00\x03" + "\x0b\x00\x01a\x03\x01" + "\x00\x03\x05" + "\x0b\x00\x01a\x03\x02")
	var ordered classic.Map
	require.NoError(t, classic.Values.Decode(twice, &ordered))
	require.Equal(t, classic.Map{{Key: "a", Value: int8(2)}, {Key: nil, Value: int8(5)}}, ordered)
	var plain map[string]int8 // of which the zero value stands for null
	require.NoError(t, classic.Values.Decode(twice, &plain))
	require.Equal(t, map[string]int8{"a": 2, "": 5}, plain)
}

func TestBadUTF8IsReplacedAsTheOriginalDoes(t *testing.T) {
	for in, want := range map[string]int{ // how many U+FFFD
		"\xc0\xaf\xff": 3, "\xe6\x97": 1, "\xed\xa0\x80": 1, "\xe0\x80\x80": 3, "\xf0\x9f\x98": 1, "\xf0\x80\x80\x80": 4, "\xf4\x90\x80\x80": 4, "\xf8": 1, "\xc3": 1, "\x80": 1,
	} {
		var s string
		require.NoError(t, classic.Values.Decode(append([]byte{0x0b, 0, byte(len(in) + 2)}, "a"+in+"b"...), &s))
		require.Equal(t, "a"+strings.Repeat("\uFFFD", want)+"b", s, "%x", in)
	}
}

func TestCodes(t *testing.T) {
	for n, want := range map[int32]codec.Code{
		-1: codec.Failed, -2: codec.SessionClosed, 0: -10_000, 2: -10_002, 404: -10_404, 999: -10_999, 1000: 1000, -3: -3, math.MinInt32: math.MinInt32,
	} {
		require.Equal(t, want, classic.Code(n))
		require.Equal(t, n, classic.AbortOf(&codec.Abort{Code: want}).Code, "and back")
	}
	require.Equal(t, &classic.Abort{Code: -1, Message: "text"}, classic.AbortOf(&codec.Abort{Code: codec.Failed, Message: "text"}))
	require.Equal(t, &classic.Abort{Code: -1, Message: "overloaded"}, classic.AbortOf(codec.ErrOverloaded))
	require.Equal(t, &classic.Abort{Code: -2, Message: "unavailable: text"}, classic.AbortOf(codec.ErrUnavailable.Withf("text")))
	require.EqualValues(t, classic.Unexpected, classic.AbortOf(&codec.Abort{Code: 500}).Code)
}

func TestUUIDs(t *testing.T) {
	const s = "01234567-89ab-cdef-fedc-ba9876543210"
	u, err := classic.ParseUUID(strings.ToUpper(s))
	require.NoError(t, err)
	require.Equal(t, s, u.String())
	for _, bad := range []string{"", s[1:], s + "0", strings.ReplaceAll(s, "-", "0"), strings.ReplaceAll(s, "a", "g")} {
		_, err := classic.ParseUUID(bad)
		require.ErrorContains(t, err, "is not a uuid")
	}
}

func TestSyncs(t *testing.T) {
	want := classic.Sync{Version: 1, Node: classic.UUID{1}, Session: classic.UUID{2}, Time: time.UnixMilli(1400000000123).UTC(), Ping: -1, Timeout: 1800}
	m, _, err := classic.Parse(want.AppendTo(nil), classic.MaxMessage)
	require.NoError(t, err)
	got, err := classic.ParseSync(m.(*classic.Control).Data)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, "classic", classic.Values.Name())
	_, err = classic.ParseSync(make([]byte, 49))
	require.EqualError(t, err, "classic: bad format at byte 49: a SyncConfig has 50 bytes, this one 49")
	require.ErrorIs(t, err, codec.ErrProtocol)
	require.False(t, errors.Is(err, codec.ErrTooLarge))
}

// The example of the package comment, and what the original's method would be.
func ExampleParams() {
	type person struct {
		Name string
		Age  int32
	}
	b, _ := classic.Values.Append(nil, person{"Ada", 36}) // String f(String name, int age)
	count, params, _ := classic.SplitParams(b)
	fmt.Printf("%d %x\n", count, params)
	// Output: 2 0b00034164610500000024
}
