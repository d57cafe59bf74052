package msgpack_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/msgpack"
)

// TestIntegers_KeepValue checks the vectors of the specification: an integer keeps its value in
// every type that holds it.
func TestIntegers_KeepValue(t *testing.T) {
	var vectors struct {
		Integers []struct{ Name, Codec, Value, Hex string }
	}
	data, err := os.ReadFile("../../spec/vectors.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &vectors))
	seen := 0
	for _, v := range vectors.Integers {
		if v.Codec != "msgpack" {
			continue
		}
		seen++
		t.Run(v.Name, func(t *testing.T) {
			data, err := hex.DecodeString(v.Hex)
			require.NoError(t, err)
			n, ok := new(big.Int).SetString(v.Value, 10)
			require.True(t, ok)
			requireInteger(t, data, *n, true)
			requireInteger(t, data, n, true)
			requireInteger(t, data, n.Int64(), n.IsInt64())
			requireInteger(t, data, int(n.Int64()), n.IsInt64() && int64(int(n.Int64())) == n.Int64())
			requireInteger(t, data, n.Uint64(), n.IsUint64())
			requireInteger(t, data, int8(n.Int64()), n.IsInt64() && int64(int8(n.Int64())) == n.Int64())
			requireInteger(t, data, uint16(n.Uint64()), n.IsUint64() && uint64(uint16(n.Uint64())) == n.Uint64())
			requireInteger(t, data, [1]int32{int32(n.Int64())}, n.IsInt64() && int64(int32(n.Int64())) == n.Int64(), 0x91)
			var free any = n.Uint64()
			if n.IsInt64() {
				free = n.Int64()
			}
			requireInteger(t, data, free, true)
		})
	}
	require.GreaterOrEqual(t, seen, 20)
}

// requireInteger requires that data, behind the bytes before it, is read as want and written from
// it, or rejected if want's type cannot hold it.
func requireInteger[T any](t *testing.T, data []byte, want T, fits bool, before ...byte) {
	t.Helper()
	data = append(before, data...)
	var got T
	err := msgpack.Values.Decode(data, &got)
	if !fits {
		require.ErrorContains(t, err, "an integer of", "%T", want)
		return
	}
	require.NoError(t, err, "%T", want)
	require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
	require.IsType(t, want, got)
	written, err := msgpack.Values.Append(nil, want)
	require.NoError(t, err, "%T", want)
	require.Equal(t, data, written, "%T", want)
}

// Integers are read in every form.
func TestIntegers_EveryForm(t *testing.T) {
	for _, data := range []string{"\x05", "\xcc\x05", "\xcd\x00\x05", "\xce\x00\x00\x00\x05", "\xcf\x00\x00\x00\x00\x00\x00\x00\x05", "\xd0\x05", "\xd1\x00\x05", "\xd2\x00\x00\x00\x05", "\xd3\x00\x00\x00\x00\x00\x00\x00\x05"} {
		var (
			signed   int8
			unsigned uint8
			free     any
			real     float32
		)
		for _, v := range []any{&signed, &unsigned, &free, &real} {
			require.NoError(t, msgpack.Values.Decode([]byte(data), v))
		}
		require.EqualValues(t, 5, signed)
		require.EqualValues(t, 5, unsigned)
		require.Equal(t, int64(5), free, "for every form")
		require.EqualValues(t, 5, real)
	}
}

// A floating-point number is no integer.
func TestIntegers_FromFloat(t *testing.T) {
	for _, data := range []string{"\xca\x3f\x80\x00\x00", "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"} {
		require.Error(t, msgpack.Values.Decode([]byte(data), new(int64)))
		require.Error(t, msgpack.Values.Decode([]byte(data), new(big.Int)))
	}
	var large float32
	require.Error(t, msgpack.Values.Decode([]byte("\xcb\x7f\xe0\x00\x00\x00\x00\x00\x00"), &large), "beyond 32 bits")
}
