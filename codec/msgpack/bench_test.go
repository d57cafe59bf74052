package msgpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/msgpack"
)

// sample has the fields of the struct that module bench sends.
type sample struct {
	Kind         int32
	Cardinality  int32
	Number       int32
	Name         string
	TypeURL      string
	OneofIndex   int32
	Packed       bool
	JSONName     string
	DefaultValue string
}

var aSample = sample{
	Kind: 9, Cardinality: 3, Number: 17, Name: "shipping_address", TypeURL: "type.example.com/shop.Address", OneofIndex: 2, Packed: true,
	JSONName: "shippingAddress", DefaultValue: "none",
}

// BenchmarkStruct compares MessagePack with CBOR, with the same names.
func BenchmarkStruct(b *testing.B) {
	for _, c := range []codec.Values{msgpack.Values, codec.CBOR} {
		data, err := c.Append(nil, &aSample)
		require.NoError(b, err)
		b.Run("Append/"+c.Name(), func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 256)
			for b.Loop() {
				buf, _ = c.Append(buf[:0], &aSample)
			}
		})
		b.Run("Decode/"+c.Name(), func(b *testing.B) {
			b.ReportAllocs()
			var v sample
			for b.Loop() {
				_ = c.Decode(data, &v)
			}
		})
	}
}

func BenchmarkAny(b *testing.B) {
	for _, c := range []codec.Values{msgpack.Values, codec.CBOR} {
		data, err := c.Append(nil, &aSample)
		require.NoError(b, err)
		b.Run(c.Name(), func(b *testing.B) {
			b.ReportAllocs()
			var v any
			for b.Loop() {
				_ = c.Decode(data, &v)
			}
		})
	}
}

// Plain values are written without an allocation, and reading allocates only the values.
func TestValues_PlainAllocs(t *testing.T) {
	var (
		s = "a string"
		p = []byte("bytes")
		n = 1 << 30
		u = uint64(1 << 63)
		f = 1.5
		k = true
	)
	buf := make([]byte, 0, 64)
	for _, tt := range []struct {
		v    any
		want float64
	}{{&s, 1}, {&p, 1}, {&n, 0}, {&u, 0}, {&f, 0}, {&k, 0}} {
		require.Zero(t, testing.AllocsPerRun(100, func() { buf, _ = msgpack.Values.Append(buf[:0], tt.v) }), "%T", tt.v)
		require.Equal(t, tt.want, testing.AllocsPerRun(100, func() { _ = msgpack.Values.Decode(buf, tt.v) }), "%T", tt.v)
	}
}

// Decoding a struct allocates only its strings.
func TestValues_StructAllocs(t *testing.T) {
	v, buf := aSample, make([]byte, 0, 256)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { buf, _ = msgpack.Values.Append(buf[:0], &v) }), 1.0, "the encoder")
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _ = msgpack.Values.Decode(buf, &v) }), 5.0, "four strings and the reader")
}
