package codec

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// integerVector is an integer and its encoding by a value codec.
type integerVector struct {
	Name, Codec, Value string
	Hex                hexBytes
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// Integers are decoded as in the vectors, by every type that holds them.
func TestIntegers_Vectors(t *testing.T) {
	var vectors struct{ Integers []integerVector }
	data, err := os.ReadFile("../spec/vectors.json") // spec/protocol.md explains its form
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &vectors))
	list := vectors.Integers
	require.GreaterOrEqual(t, len(list), 30)
	for _, v := range list {
		if v.Codec == "msgpack" { // its own module tests it
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			n, ok := new(big.Int).SetString(v.Value, 10)
			require.True(t, ok)
			requireInteger(t, v, n, true)
			requireInteger(t, v, n.Int64(), n.IsInt64())
			requireInteger(t, v, n.Uint64(), n.IsUint64())
			requireWithoutType(t, v, n)
		})
	}
}

// requireInteger requires that v is decoded as want and encoded from want, or rejected if the type
// of want does not hold the integer.
func requireInteger[T any](t *testing.T, v integerVector, want T, fits bool) {
	values := map[string]Values{"cbor": CBOR, "json": JSON}[v.Codec]
	var got T
	err := values.Decode(v.Hex, &got)
	if !fits {
		require.Error(t, err, "%T", want)
		return
	}
	require.NoError(t, err, "%T", want)
	require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
	written, err := values.Append(nil, want)
	require.NoError(t, err, "%T", want)
	require.Equal(t, hex.EncodeToString(v.Hex), hex.EncodeToString(written), "%T", want)
}

// requireWithoutType requires that v, decoded into an any, is n, or that v is rejected.
func requireWithoutType(t *testing.T, v integerVector, n *big.Int) {
	var got any
	if err := map[string]Values{"cbor": CBOR, "json": JSON}[v.Codec].Decode(v.Hex, &got); err != nil {
		require.Equal(t, "json", v.Codec)
		require.ErrorContains(t, err, n.String()+" came")
		return
	}
	read := new(big.Int)
	switch got := got.(type) {
	case float64:
		new(big.Float).SetFloat64(got).Int(read)
	case big.Int:
		read = &got
	default:
		read.SetString(fmt.Sprint(got), 10)
	}
	require.Equal(t, n.String(), read.String())
}
