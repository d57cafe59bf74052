package classic_test

import (
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
)

// A mismatch is reported with its place.
func TestMismatch_NamesPlace(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for want, c := range map[string]struct{ v, into any }{
			"at [1][0]: a string was expected, and the integer 5 came":                  {[]any{[]string{"a"}, []int8{5}}, new([][]string)},
			`at ["k"]: an integer of 8 bits was expected, and the integer 300 came`:     {map[string]int{"k": 300}, new(map[string]int8)},
			`at [key of entry 0]: an integer of 8 bits was expected, and a string came`: {map[string]int{"k": 1}, new(map[int8]int)},
			"at [1]: a boolean was expected, and a list came":                           {tagged{}, new(bool)},
			"a binary of 4 bytes was expected, and a binary of 2 bytes came":            {[]byte("ab"), new([4]byte)},
			"a struct of schema \"S\" with 2 fields was expected, and one of schema \"P\" with 1 came": {
				classic.Struct{Schema: "P", Fields: []any{1}}, new(struct {
					_    struct{} `classic:"S"`
					A, B int
				})},
		} {
			if _, ok := c.into.(*bool); ok {
				c.v, c.into = classic.Params{"a", []int{1}}, new(struct {
					A string
					B bool
				})
			}
			b, err := form.Append(nil, c.v)
			require.NoError(t, err)
			var e *codec.TypeError
			require.ErrorAs(t, form.Decode(b, c.into), &e, want)
			require.Equal(t, want, e.Text())
		}
	})
}

// ofGo matches text that must not be sent to the peer. The format itself has a struct.
var ofGo = regexp.MustCompile(`interface|u?int(8|16|32|64|ptr)\b|float(32|64)|\bfunc\b|\bchan\b|\*|map\[|\[\][a-z]|main\.|classic[._]|asterisque|reflect|tagged|pair`)

// The error text for a peer has no Go types.
func TestMismatch_NoGoTypes(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		values := []any{nil, true, int8(5), 300, int64(1 << 40), float32(1), 1e300, "x", []byte("ab"), classic.UUID{1}, []any{1, "a"}, map[string]int{"a": 1}, classic.Map{{Key: []int{1}, Value: 1}}, classic.Struct{Schema: "S", Fields: []any{1}}, pair{1, 2}, tagged{}, classic.Params{1, "x"}}
		types := []reflect.Type{reflect.TypeFor[int8](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[error](), reflect.TypeFor[chan int](), reflect.TypeFor[[4]byte](), reflect.TypeFor[[]pair](), reflect.TypeFor[map[any]any](), reflect.TypeFor[map[int8]tagged](), reflect.TypeFor[func()]()}
		for _, v := range values[1:] {
			types = append(types, reflect.TypeOf(v))
		}
		failed := 0
		for _, v := range values {
			b, err := form.Append(nil, v)
			require.NoError(t, err)
			for _, data := range [][]byte{b, b[:len(b)-1], append(b, 0)} {
				for _, to := range types {
					err := form.Decode(data, reflect.New(to).Interface())
					if err == nil {
						continue
					}
					failed++
					var text interface{ Text() string }
					require.ErrorAs(t, err, &text)
					require.NotRegexp(t, ofGo, text.Text())
				}
			}
		}
		require.Greater(t, failed, 500)
	})
}
