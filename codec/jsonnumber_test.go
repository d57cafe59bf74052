package codec

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

type (
	bigs struct {
		N *big.Int
		L []big.Int
		M map[string]*big.Rat
	}
	wrapped struct{ *big.Int }
)

// TestAttackJSON_LongNumbers would take half a minute and 36 GB without a limit: the time to parse
// digits grows with the square of their number.
func TestAttackJSON_LongNumbers(t *testing.T) {
	const size = 1 << 20
	long := strings.Repeat("9", size)
	for _, tt := range []struct {
		data string
		into any
		says string
	}{
		{long, new(big.Int), "a number of at most 10000 digits was expected, and one of 1048576 came"},
		{"-" + long, new(*big.Int), "one of 1048576 came"},
		{`{"N":` + long + `}`, new(bigs), "at .N: a number of at most 10000 digits"},
		{`{"L":[1,` + long + `]}`, new(bigs), "at .L[1]: a number of at most 10000 digits"},
		{`{"M":{"k":"1/` + long + `"}}`, new(bigs), `at .M["k"]: a number of at most 10000 digits`},
		{`"0.` + long + `"`, new(big.Float), "one of 1048576 came"},
		{`"0x` + strings.Repeat("f_", size/2) + `"`, new(big.Rat), "one of 1048576 came"},
		{`"0x` + strings.Repeat("e", size) + `"`, new(big.Rat), "one of 1048576 came"},
		{`"` + strings.Repeat(`\u0039`, size/6) + `"`, new(big.Rat), "one with escapes came"},
		{`"1\u0065999999"`, new(big.Rat), "one with escapes came"},
		{`"1e10001"`, new(big.Rat), "one with the exponent 10001 came"},
		{`"1E-999999999999999999999"`, new(big.Rat), "one with the exponent 2147483647 came"},
		{`"0x1p1000000"`, new(big.Rat), "one with the exponent 1000000 came"},
		{long, new(wrapped), "one of 1048576 came"},
		{strings.Repeat("9", 10_001), new(big.Int), "one of 10001 came"},
	} {
		var err error
		data := []byte(tt.data)
		made := weightest.AllocatedAtMost(64<<10, func() { err = JSON.Decode(data, tt.into) })
		require.ErrorContains(t, err, tt.says, "%T", tt.into)
		require.LessOrEqual(t, made, 64<<10, "%T", tt.into)
		require.Less(t, len(err.Error()), 300)
	}
}

// Numbers within the bound are accepted.
func TestJSON_NumbersInBound(t *testing.T) {
	most := strings.Repeat("9", longestDigits)
	for data, into := range map[string]any{
		most: new(big.Int), `"` + most + "/1" + most[1:] + `"`: new(big.Rat), `"1e-10000"`: new(big.Rat), `"1e10000"`: new(big.Float),
		`{"N":null,"L":[` + most + "," + most + `]}`: new(bigs),
		strings.Repeat("9", 1<<20):                   new(json.Number),
		`"` + most + `9"`:                            new(string),
		`[1` + strings.Repeat("0", 300) + `]`:        new([]float64),
	} {
		require.NoError(t, JSON.Decode([]byte(data), into), "%T", into)
	}
	require.ErrorContains(t, JSON.Decode([]byte(`{"N":`+most+"9"), new(bigs)), "malformed JSON")
}

// TestJSON_ExponentIsWeighed requires that the estimate includes the digits that an exponent
// expands to.
func TestJSON_ExponentIsWeighed(t *testing.T) {
	data := []byte("[" + strings.Repeat(`"1e10000",`, 100) + `"1e10000"]`)
	weighed := JSON.(Weigher).Weigh(data, reflect.TypeFor[[]big.Rat](), math.MaxInt)
	grown := weightest.GrownAtMost(weighed, func() any {
		var v []big.Rat
		require.NoError(t, JSON.Decode(data, &v))
		return v
	})
	require.LessOrEqual(t, grown, weighed)
}
