package classic_test

import (
	"bytes"
	"encoding/hex"
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
func roundTrip[T any](t testing.TB, form classic.Codec, v any) (got T, b []byte) {
	t.Helper()
	b, err := form.Append(nil, v)
	require.NoError(t, err)
	require.NoError(t, form.Decode(b, &got))
	return got, b
}

func requireSame[T any](t testing.TB, form classic.Codec, v T, simple string) {
	t.Helper()
	got, b := roundTrip[T](t, form, v)
	require.Equal(t, v, got)
	want, err := hex.DecodeString(simple)
	require.NoError(t, err)
	require.Equal(t, recoded(form, want), b)
	_, again := roundTrip[T](t, form, &v)
	require.Equal(t, b, again, "a pointer is what it points to")
}

// The types are those of the table in the package comment.
func TestValues_Types(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		requireSame[any](t, form, nil, "00")
		requireSame[*int](t, form, nil, "00")
		requireSame(t, form, true, "01")
		requireSame(t, form, false, "02")
		requireSame(t, form, int8(-1), "03ff")
		requireSame(t, form, int16(-2), "04fffe")
		requireSame(t, form, int32(3), "0500000003")
		requireSame(t, form, int64(4), "060000000000000004")
		requireSame(t, form, -5, "06fffffffffffffffb")
		requireSame(t, form, time.Second, "06000000003b9aca00")
		requireSame(t, form, uint8(200), "0400c8")
		requireSame(t, form, uint16(65535), "050000ffff")
		requireSame(t, form, uint32(math.MaxUint32), "0600000000ffffffff")
		requireSame(t, form, uint64(math.MaxInt64), "067fffffffffffffff")
		requireSame(t, form, uint(7), "060000000000000007")
		requireSame(t, form, float32(0.5), "073f000000")
		type half float32
		requireSame(t, form, half(0.5), "073f000000")
		requireSame(t, form, 0.25, "083fd0000000000000")
		requireSame(t, form, "日本", "0b0006e697a5e69cac")
		requireSame(t, form, star("x"), "0b000178")
		requireSame(t, form, []byte{1, 2}, "0a00020102")
		requireSame(t, form, shades{1, 2}, "0a00020102")
		requireSame(t, form, [3]byte{1, 2, 3}, "0a0003010203")
		requireSame(t, form, classic.UUID{1, 15: 2}, "0c01000000000000000000000000000002")
		requireSame(t, form, key16{1}, "0c01000000000000000000000000000000")
		requireSame(t, form, []string{"a", "b"}, "2000020b0001610b000162")
		requireSame(t, form, [2]int8{1, 2}, "20000203010302")
		requireSame(t, form, map[string]int8{"b": 2, "a": 1}, "2100020b00016103010b0001620302")
		requireSame(t, form, pair{1, 2}, "220000020500000001"+"0500000002")
		requireSame(t, form, tagged{X: 1, Y: 2}, "220011636f6d2e6578616d706c652e506f696e74020500000001"+"0500000002")
		requireSame(t, form, void{}, "22000000") // which becomes no parameters, or null
		requireSame(t, form, []void{{}, {}}, "2000020000")
		requireSame(t, form, map[string]*void{"a": nil}, "2100010b00016100")
		requireSame(t, form, classic.Struct{Schema: "void", Fields: []any{}}, "220004766f696400")
		requireSame(t, form, classic.Struct{Schema: "S", Fields: []any{"x", nil}}, "22000153020b00017800")
		requireSame(t, form, classic.Map{{Key: "a", Value: int8(1)}, {Key: nil, Value: []any{}}}, "2100020b00016103010020"+"0000")
		requireSame(t, form, nested{Point: &tagged{X: 1}, List: []pair{{1, 2}}, Map: map[string]int8{"k": 1}, Any: "any"},
			"22000004"+"220011636f6d2e6578616d706c652e506f696e74020500000001"+"0500000000"+"200001220000020500000001"+"0500000002"+"2100010b00016b03010b0003616e79")
	})
}

func TestValues_NilAndInvalid(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		_, b := roundTrip[[]string](t, form, []string(nil))
		require.Equal(t, recoded(form, "\x20\x00\x00"), b, "an empty list")
		_, b = roundTrip[map[string]int](t, form, map[string]int(nil))
		require.Equal(t, recoded(form, "\x21\x00\x00"), b, "an empty map")
		_, b = roundTrip[[]byte](t, form, []byte(nil))
		require.Equal(t, recoded(form, "\x0a\x00\x00"), b, "an empty binary")
		var s string // which the original does not write
		require.NoError(t, form.Decode(recoded(form, "\x0b\x00\x03a\xffb"), &s))
		require.Equal(t, "a\uFFFDb", s)

		odd := recoded(form, "\x07\x7f\xa0\x00\x01") // a NaN that a conversion would change
		var nan float32
		require.NoError(t, form.Decode(odd, &nan))
		again, err := form.Append(nil, nan)
		require.NoError(t, err)
		require.Equal(t, odd, again)

		p := pair{1, 2}
		require.NoError(t, form.Decode([]byte{0}, &p))
		require.Zero(t, p, "null is the zero value")
		list := classic.Params{1}
		got, b := roundTrip[[][]any](t, form, [][]any{list})
		require.Equal(t, recoded(form, "\x20\x00\x01\x20\x00\x01\x06\x00\x00\x00\x00\x00\x00\x00\x01"), b, "Params inside a value are a list")
		require.Equal(t, [][]any{{int64(1)}}, got)
	})
}

// A number is decoded as every type that holds it.
func TestDecode_Numbers(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for _, c := range []struct {
			v    any
			to   func(form classic.Codec, b []byte) (any, error)
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
			b, err := form.Append(nil, c.v)
			require.NoError(t, err)
			got, err := c.to(form, b)
			if c.want == nil {
				var mismatch *codec.TypeError
				require.ErrorAs(t, err, &mismatch, "%T %v", c.v, c.v)
				require.NotContains(t, mismatch.Text(), "classic.", "the text for the peer does not mention Go")
				require.ErrorContains(t, mismatch.Err, "cannot be stored in")
				continue
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		}
	})
}

func as[T any](form classic.Codec, b []byte) (any, error) {
	var v T
	err := form.Decode(b, &v)
	return v, err
}

// Append refuses values that the format cannot hold.
func TestAppend_Refused(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		type loop struct{ Next *loop }
		endless := &loop{}
		endless.Next = endless
		var mismatch *codec.TypeError
		for _, v := range []any{make(chan int), func() {}, complex(1, 1), time.Now(), []any{struct{ hidden int }{}}, map[string]any{"x": make(chan int)}} {
			b, err := form.Append([]byte("before"), v)
			require.ErrorAs(t, err, &mismatch, "%T", v)
			require.Equal(t, "before", string(b))
		}
		for _, v := range []any{strings.Repeat("x", 65536), make([]byte, 65536), make([]int8, 65536), classic.Params(make([]any, 65536)), uint64(1 << 63), endless,
			make(classic.Map, 65536), map[any]any{endless: 1}, classic.Struct{Fields: make([]any, 256)}, classic.Struct{Schema: strings.Repeat("x", 65536)}} {
			_, err := form.Append(nil, v)
			require.ErrorIs(t, err, codec.ErrTooLarge, "%T", v)
		}
		require.ErrorAs(t, form.Decode([]byte{0}, 5), &mismatch)
		require.ErrorAs(t, form.Decode([]byte{0}, (*int)(nil)), &mismatch)
	})
}

// Decode refuses bytes that are not a value.
func TestDecode_NoValue(t *testing.T) {
	for form, malformed := range map[classic.Codec][]string{
		classic.Simple:      {"", "\x03", "\x09", "\x00\x00", "\x20\x00\x02\x00", "\x21\x00\x01\x00", "\x22\x00\x00\x01", "\x28", "\x28\x00\x01", "\x28\x00\x00\x00"},
		classic.MessagePack: {"", "\x03", "\x09", "\x00\x00", "\x20\x02\x00", "\x21\x01\x00", "\x22\xa0\x01", "\x28", "\x28\x01", "\x28\x00\x00", "\x28\xc0"},
	} {
		for _, b := range malformed {
			var v any
			require.ErrorIs(t, form.Decode([]byte(b), &v), codec.ErrProtocol, "%x", b)
			_, err := form.ResultOf([]byte(b))
			require.True(t, b == "" || err != nil, "%x", b)
			if _, _, err := form.SplitParams([]byte(b)); b != "" {
				require.ErrorIs(t, err, codec.ErrProtocol, "%x", b)
			}
		}
	}
}

// Values can be nested up to MaxDepth.
func TestValues_Depth(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		list := func(depth int) []byte { return append(bytes.Repeat([]byte(counted(form, list, 1, "")), depth), 0) }
		var v any
		require.NoError(t, form.Decode(list(classic.MaxDepth), &v))
		b, err := form.Append(nil, v)
		require.NoError(t, err)
		require.Equal(t, list(classic.MaxDepth), b)
		_, err = form.Append(nil, []any{v})
		require.ErrorIs(t, err, codec.ErrTooLarge)
		require.ErrorIs(t, form.Decode(list(classic.MaxDepth+1), &v), codec.ErrTooLarge)
	})
}

// If several entries have equal keys, the last one counts.
func TestDecode_EqualKeys(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		a := string(recoded(form, "\x0b\x00\x01a"))
		twice := []byte(counted(form, mapping, 3, "") + a + "\x03\x01" + "\x00\x03\x05" + a + "\x03\x02")
		var ordered classic.Map
		require.NoError(t, form.Decode(twice, &ordered))
		require.Equal(t, classic.Map{{Key: "a", Value: int8(2)}, {Key: nil, Value: int8(5)}}, ordered)
		var plain map[string]int8 // of which the zero value stands for null
		require.NoError(t, form.Decode(twice, &plain))
		require.Equal(t, map[string]int8{"a": 2, "": 5}, plain)
	})
}

// Invalid UTF-8 is replaced as in the original.
func TestDecode_InvalidUTF8(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for in, want := range map[string]int{ // how many U+FFFD
			"\xc0\xaf\xff": 3, "\xe6\x97": 1, "\xed\xa0\x80": 1, "\xe0\x80\x80": 3, "\xf0\x9f\x98": 1, "\xf0\x80\x80\x80": 4, "\xf4\x90\x80\x80": 4, "\xf8": 1, "\xc3": 1, "\x80": 1,
		} {
			var s string
			require.NoError(t, form.Decode([]byte(sized(form, "\x0b", "a"+in+"b")), &s))
			require.Equal(t, "a"+strings.Repeat("\uFFFD", want)+"b", s, "%x", in)
		}
	})
}

func TestCode(t *testing.T) {
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

func TestUUID(t *testing.T) {
	const s = "01234567-89ab-cdef-fedc-ba9876543210"
	u, err := classic.ParseUUID(strings.ToUpper(s))
	require.NoError(t, err)
	require.Equal(t, s, u.String())
	for _, bad := range []string{"", s[1:], s + "0", strings.ReplaceAll(s, "-", "0"), strings.ReplaceAll(s, "a", "g")} {
		_, err := classic.ParseUUID(bad)
		require.ErrorContains(t, err, "is not a uuid")
	}
}

func TestSync(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		want := classic.Sync{Version: 1, Node: classic.UUID{1}, Session: classic.UUID{2}, Time: time.UnixMilli(1400000000123).UTC(), Ping: -1, Timeout: 1800}
		m, _, err := form.Parse(want.AppendTo(nil, form), classic.MaxMessage)
		require.NoError(t, err)
		got, err := classic.ParseSync(m.(*classic.Control).Data)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, "classic-"+strings.ToLower(strings.TrimSuffix(form.String(), "Codec")), form.Name())
		_, err = classic.ParseSync(make([]byte, 49))
		require.EqualError(t, err, "classic: bad format at byte 49: a SyncConfig has 50 bytes, this one 49")
		require.ErrorIs(t, err, codec.ErrProtocol)
		require.False(t, errors.Is(err, codec.ErrTooLarge))
	})
}
