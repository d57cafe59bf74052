package codec

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzValues compares the paths without reflection with the library: for any bytes and any value,
// the outcome is the same.
func FuzzValues(f *testing.F) {
	for _, v := range []any{"", "ß", []byte("bytes"), true, 23, 24, -25, 1 << 30, int64(math.MinInt64), uint64(math.MaxUint64), 1.5, math.NaN(), math.Inf(-1), nil} {
		data, err := CBOR.Append(nil, v)
		require.NoError(f, err)
		f.Add(data, int64(1), 1.5)
		f.Add(data, int64(-1), math.NaN())
	}
	for _, data := range []string{"\x61\xff", "\x18\x01", "\x78\x01a", "\x7f\x61a\xff", "\xf9\x3c\x00", "\x3b\xff\xff\xff\xff\xff\xff\xff\xff", "\x61a\x00", "\xc2\x41\x01", "\xf7", "\x82\x01\x02"} {
		f.Add([]byte(data), int64(math.MinInt64), math.Inf(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, i int64, fl float64) {
		for _, into := range []any{new(string), new([]byte), new(bool), new(int), new(int64), new(uint64), new(float64), new(any)} {
			requireDecodesAsLibrary(t, data, into)
		}
		s, n, u, b := string(data), int(i), uint64(i), i < 0
		for _, v := range []any{s, data, b, n, i, u, fl, &s, &data, &b, &n, &i, &u, &fl, (*string)(nil), []byte(nil), new([]byte)} {
			requireAppendsAsLibrary(t, v)
		}
	})
}

func requireDecodesAsLibrary(t *testing.T, data []byte, into any) {
	t.Helper()
	want := reflect.New(reflect.TypeOf(into).Elem()).Interface()
	wantErr := CBOR.(cborValues).dec.Unmarshal(data, want)
	err := CBOR.Decode(data, into)
	require.Equal(t, wantErr == nil, err == nil, "%T from %x: %v, %v", into, data, wantErr, err)
	require.Equal(t, show(want), show(into), "%T from %x", into, data)
}

func requireAppendsAsLibrary(t *testing.T, v any) {
	t.Helper()
	want, err := CBOR.(cborValues).enc.Marshal(v)
	require.NoError(t, err)
	got, err := CBOR.Append([]byte("before"), v)
	if text := reflect.Indirect(reflect.ValueOf(v)); text.Kind() == reflect.String && !utf8.ValidString(text.String()) {
		require.ErrorContains(t, err, "UTF-8")
		return
	}
	require.NoError(t, err)
	require.Equal(t, append([]byte("before"), want...), got, "%T", v)
}

// show makes values comparable: it distinguishes nil from empty, and treats two NaN of the same
// bits as equal.
func show(p any) string {
	if f, ok := p.(*float64); ok {
		return fmt.Sprintf("%x", math.Float64bits(*f))
	}
	return fmt.Sprintf("%#v", reflect.ValueOf(p).Elem().Interface())
}

// The path without reflection takes the common types.
func TestCBOR_PlainPath(t *testing.T) {
	for _, v := range []any{"ß", []byte("b"), []byte{}, true, false, 0, -1, 1 << 30, int64(1 << 40), int64(math.MinInt64), uint64(math.MaxUint64), 1.5} {
		into := reflect.New(reflect.TypeOf(v))
		data, ok := appendPlain(nil, v)
		require.True(t, ok, "%T", v)
		require.True(t, decodePlain(data, into.Interface()), "%T", v)
		require.Equal(t, v, into.Elem().Interface())
		again, ok := appendPlain(nil, into.Interface())
		require.True(t, ok, "%T", into.Interface())
		require.Equal(t, data, again)
	}
}
