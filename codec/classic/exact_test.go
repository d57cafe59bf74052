package classic_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/valuetest"
)

// lists returns a value nested in lists of the given depth.
func lists(depth int, v any) any {
	for range depth {
		v = []any{v}
	}
	return v
}

// Append refuses a value that would change, and names the place.
func TestAppend_RefusedWithPlace(t *testing.T) {
	const bad, says = "a\xffb", "a text is not UTF-8"
	type inner struct{ Names []string }
	type outer struct {
		In  inner
		Any any
	}
	nan := make(map[float64]int)
	nan[math.NaN()] = 1
	nan[math.NaN()] = 2
	deep := strings.Repeat("[0]", 100)
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for _, tt := range []struct {
			v    any
			says string
		}{
			{bad, says},
			{outer{In: inner{[]string{"a", bad}}}, "at .In.Names[1]: " + says},
			{outer{Any: map[string]any{"k": []any{1, bad}}}, `at .Any["k"][1]: ` + says},
			{map[string]int{bad: 1}, `at ["a\xffb"]: ` + says},
			{map[int32]string{-5: bad}, "at [-5]: " + says},
			{classic.Map{{"k", bad}}, `at ["k"]: ` + says},
			{classic.Struct{Schema: "s", Fields: []any{bad}}, "at [0]: " + says},
			{classic.Params{1, bad}, "at [1]: " + says},
			{[]any{classic.Struct{Schema: bad, Fields: []any{1}}}, "at [0]: a schema is not UTF-8"},
			{[]any{nan}, "two keys of a map are one to the peer"},
			{outer{Any: time.Now()}, "at .Any: a value that the classic format can hold"},
			{[]uint64{0, math.MaxUint64}, "at [1]: the number 18446744073709551615"},
			{lists(classic.MaxDepth+1, nil), deep + ": values nested deeper than 1024"},
		} {
			data, err := form.Append([]byte("before"), tt.v)
			require.ErrorContains(t, err, tt.says)
			require.Equal(t, "before", string(data))
			var a *codec.Abort
			var text interface{ Text() string }
			require.True(t, errors.As(err, &a) || errors.As(err, &text), "the error has a text for the peer")
		}
	})
}

func TestValues_ExactOrRefused(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) { valuetest.CheckFew(t, form, 32) })
}
