package codec

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An integer without a declared type is never rounded.
func TestJSON_RoundsNoInteger(t *testing.T) {
	for data, place := range map[string]string{
		`9007199254740993`:                              "9007199254740993 came",
		`-9007199254740993`:                             "-9007199254740993 came",
		`{"a":[1,{"b":9007199254740993}]}`:              `["a"][1]["b"]: `,
		` [ "1234567890123456789" , 36028797018963969]`: "[1]: ",
		"1" + strings.Repeat("0", 400):                  "came",
	} {
		var v any
		err := JSON.Decode([]byte(data), &v)
		require.ErrorContains(t, err, place, data)
	}
	var s struct {
		Number json.Number    `json:"number"`
		Big    *big.Int       `json:"big"`
		Int    int64          `json:"int"`
		Text   any            `json:"text"`
		More   map[string]any `json:"more"`
	}
	const all = `{"number":9007199254740993,"big":9007199254740993,"int":9007199254740993,"text":"9007199254740993","unknown":9007199254740993,"more":{}}`
	require.NoError(t, JSON.Decode([]byte(all), &s))
	require.Equal(t, int64(9007199254740993), s.Int)
	require.ErrorContains(t, JSON.Decode([]byte(`{"more":{"n":9007199254740993}}`), &s), `.more["n"]: `)
	require.ErrorContains(t, JSON.Decode([]byte(`{"more":{"n":9007199254740993}}`), &s), "json.Number")
}

// A number that a float64 holds exactly is accepted.
func TestJSON_FloatHoldsIt(t *testing.T) {
	for _, f := range []float64{0, math.Copysign(0, -1), 1 << 53, -(1 << 53), 1e18, 1e20, 1e21, 1e300, 0.1234567890123456789, math.MaxFloat64, math.SmallestNonzeroFloat64, 1234567890123456.5} {
		data, err := JSON.Append(nil, f)
		require.NoError(t, err)
		var v any
		require.NoError(t, JSON.Decode(data, &v), "%s", data)
		require.Equal(t, f, v)
	}
}

// TestJSON_EveryLongInteger finds a long integer at every position.
func TestJSON_EveryLongInteger(t *testing.T) {
	for digits := fewestRounded; digits < 40; digits++ {
		for before := range 40 {
			data := fmt.Sprintf("%s9%s1%s", strings.Repeat(" ", before), strings.Repeat("0", digits-2), strings.Repeat(" ", before%3))
			require.True(t, mayBeRounded([]byte(data)), data)
		}
	}
	require.False(t, mayBeRounded([]byte(strings.Repeat("123456789012345,", 10))))
}
