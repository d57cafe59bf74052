package msgpack_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/msgpack"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// A map with the same NaN twice is refused.
func TestDecode_DuplicateNaN(t *testing.T) {
	const short, long, other = "\xca\x7f\xc0\x00\x00", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x02"
	twice := "\x82" + long + "\x01" + long + "\x01"
	for _, into := range []any{new(any), new(map[float64]int), new(map[any]any), new(struct{ A int })} {
		require.ErrorContains(t, msgpack.Values.Decode([]byte(twice), into), "a map has a key twice", "%T", into)
	}
	var list []map[float64]int
	require.ErrorContains(t, msgpack.Values.Decode([]byte("\x91"+twice), &list), "a map has a key twice")
	arrays := "\x82\x91" + short + "\x01\x91" + short + "\x01"
	require.ErrorContains(t, msgpack.Values.Decode([]byte(arrays), new(map[[1]float64]int)), "a map has a key twice")
	for _, into := range []any{new(any), new(map[float64]int), new(map[any]any), new(struct{ A int })} {
		require.NoError(t, msgpack.Values.Decode([]byte("\x83"+short+"\x01"+long+"\x01"+other+"\x01"), into), "%T", into)
	}
}

// TestAttack_NaNKeys requires that decoding a map with many NaN keys takes no more memory than the
// estimate.
func TestAttack_NaNKeys(t *testing.T) {
	const n = 1 << 16
	data := []byte{0xdf, 0, 1, 0, 0}
	for i := range n {
		data = append(data, 0xca, 0x7f, 0xc0|byte(i>>16), byte(i>>8), byte(i), 0x01)
	}
	for _, as := range []reflect.Type{reflect.TypeFor[any](), reflect.TypeFor[map[float64]int]()} {
		weighed := msgpack.Values.(codec.Weigher).Weigh(data, as, math.MaxInt)
		grown := weightest.GrownAtMost(weighed, func() any {
			v := reflect.New(as)
			require.NoError(t, msgpack.Values.Decode(data, v.Interface()))
			return v
		})
		require.LessOrEqual(t, grown, weighed, as)
	}
	same := append([]byte{0xdf, 0, 1, 0, 0}, strings.Repeat("\xca\x7f\xc0\x00\x00\x01", n)...)
	require.ErrorContains(t, msgpack.Values.Decode(same, new(any)), "a map has a key twice")
}

// TestWeigh_NaNInsideKeys requires that each key that contains NaN is weighed like a NaN key.
func TestWeigh_NaNInsideKeys(t *testing.T) {
	const n, least = 1000, 64
	for before, as := range map[string]reflect.Type{
		"": reflect.TypeFor[map[float32]int](), "\x91": reflect.TypeFor[map[[1]float32]int](),
		"\x91\x91": reflect.TypeFor[map[[1][1]float32]int](), "\x81\xa1A": reflect.TypeFor[map[struct{ A float32 }]int](),
	} {
		data := []byte{0xde, n >> 8, n & 0xff}
		for i := range n {
			data = append(append(data, before...), 0xca, 0x7f, 0xc0, byte(i>>8), byte(i), 0x01)
		}
		v := reflect.New(as)
		require.NoError(t, msgpack.Values.Decode(data, v.Interface()), "%q", before)
		require.Equal(t, n, v.Elem().Len())
		require.GreaterOrEqual(t, msgpack.Values.(codec.Weigher).Weigh(data, as, math.MaxInt), n*least, "%q", before)
	}
}
