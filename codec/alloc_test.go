package codec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Plain values are encoded without an allocation.
func TestAppend_PlainAllocs(t *testing.T) {
	s, b, n := "a string", []byte("bytes"), 1<<30
	buf := make([]byte, 0, 64)
	for _, v := range []any{s, &s, b, &b, true, n, &n, int64(n), uint64(n), 1.5} {
		require.Zero(t, testing.AllocsPerRun(100, func() { buf, _ = CBOR.Append(buf[:0], v) }), "%T", v)
	}
}

// Decoding a struct allocates only its strings.
func TestValues_StructAllocs(t *testing.T) {
	type field struct {
		Kind   int32  `cbor:"1,keyasint,omitempty"`
		Name   string `cbor:"2,keyasint,omitempty"`
		Packed bool   `cbor:"3,keyasint,omitempty"`
	}
	v, buf := field{9, "shipping_address", true}, make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf, _ = CBOR.Append(buf[:0], &v) }))
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { _ = CBOR.Decode(buf, &v) }))
}

// Decoding plain values allocates only the values.
func TestDecode_PlainAllocs(t *testing.T) {
	var (
		s string
		b []byte
		n int
		u uint64
		f float64
		k bool
	)
	for _, tt := range []struct {
		value, into any
		want        float64
	}{
		{"a string", &s, 1}, {[]byte("bytes"), &b, 1}, {1 << 30, &n, 0}, {uint64(1 << 63), &u, 0}, {1.5, &f, 0}, {true, &k, 0},
	} {
		data, err := CBOR.Append(nil, tt.value)
		require.NoError(t, err)
		require.Equal(t, tt.want, testing.AllocsPerRun(100, func() { _ = CBOR.Decode(data, tt.into) }), "%T", tt.into)
	}
}
