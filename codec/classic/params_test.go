package classic_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
)

// call sends the parameter of a function from one side to the other, and returns the number of
// parameters in the message.
func call[T any](t testing.TB, form classic.Codec, v any) (got T, count uint16, err error) {
	b, err := form.Append(nil, v)
	require.NoError(t, err)
	count, params, err := form.SplitParams(b)
	require.NoError(t, err)
	return got, count, form.Decode(form.JoinParams(nil, &classic.Open{Count: count, Params: params}), &got)
}

func requireCall[T any](t testing.TB, form classic.Codec, v T, want uint16) {
	t.Helper()
	got, count, err := call[T](t, form, &v)
	require.NoError(t, err)
	require.Equal(t, v, got)
	require.Equal(t, want, count)
}

// SplitParams converts the parameter of a function to parameters.
func TestSplitParams(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		requireCall(t, form, void{}, 0)
		requireCall(t, form, struct{}{}, 0)
		requireCall(t, form, &struct{}{}, 0)
		requireCall(t, form, classic.Struct{Schema: "void", Fields: []any{}}, 1)
		requireCall(t, form, "x", 1)
		requireCall(t, form, 5, 1)
		requireCall(t, form, []string{"a", "b"}, 1)
		requireCall(t, form, []byte("ab"), 1)
		requireCall(t, form, map[string]string{"a": "b"}, 1)
		requireCall(t, form, tagged{X: 1, Y: 2}, 1)
		requireCall(t, form, pair{1, 2}, 2)
		requireCall(t, form, &pair{1, 2}, 2)
		requireCall[*pair](t, form, nil, 1)
		requireCall(t, form, nested{Point: &tagged{}, List: []pair{}, Map: map[string]int8{}}, 4)
		requireCall(t, form, classic.Params{}, 0)
		requireCall(t, form, classic.Params{"a", int8(1), nil}, 3)
		requireCall(t, form, classic.Struct{Schema: "S", Fields: []any{"x"}}, 1)

		got, count, err := call[any](t, form, "x")
		require.NoError(t, err)
		require.EqualValues(t, 1, count)
		require.Equal(t, classic.Params{"x"}, got, "any receives Params")
		for _, v := range []any{pair{}, void{}, classic.Params{1, 2, 3}} {
			_, _, err := call[string](t, form, v)
			var mismatch *codec.TypeError
			require.ErrorAs(t, err, &mismatch)
			require.Equal(t, "a call with 1 parameter", mismatch.Want)
		}
		_, _, err = call[pair](t, form, "x")
		require.ErrorContains(t, err, "a call with 2 parameters was expected, and one with 1 came: they are stored in a classic_test.pair")
		type self *self
		_, _, err = call[self](t, form, classic.Params{1, 2})
		require.Error(t, err, "a type that points to itself")

		b, err := form.ResultOf(form.JoinParams(nil, &classic.Open{Count: 1, Params: []byte{0}}))
		require.NoError(t, err)
		require.Equal(t, recoded(form, "\x20\x00\x01\x00"), b, "Params as a result are a list")
		b, err = form.ResultOf(nil)
		require.NoError(t, err)
		require.Equal(t, []byte{0}, b)
	})
}

// A result of nothing is null, as in the original.
func TestResultOf_Nothing(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for name, v := range map[string]any{"struct{}": struct{}{}, "of a name": void{}, "a pointer": &void{}, "nil": nil, "a nil pointer": (*void)(nil)} {
			b, err := form.Append(nil, v)
			require.NoError(t, err)
			b, err = form.ResultOf(b)
			require.NoError(t, err)
			require.Equal(t, []byte{0}, b, name)
		}
		unit, err := form.Append(nil, classic.Struct{Schema: "void"})
		require.NoError(t, err)
		same, err := form.ResultOf(bytes.Clone(unit))
		require.NoError(t, err)
		require.Equal(t, unit, same, "a declared struct receives it")
		for _, b := range [][]byte{{0}, unit} {
			got := &void{}
			require.NoError(t, form.Decode(b, &got))
			var value void
			require.NoError(t, form.Decode(b, &value))
			require.Error(t, form.Decode([]byte{0x01}, &value), "something is not nothing")
		}
		var nothing any = "something"
		require.NoError(t, form.Decode([]byte{0}, &nothing))
		require.Nil(t, nothing)
	})
}

// The example of the package comment, with the signature of the same method in the original.
func ExampleParams() {
	type person struct {
		Name string
		Age  int32
	}
	for _, c := range []classic.Codec{classic.MessagePack, classic.Simple} {
		b, _ := c.Append(nil, person{"Ada", 36}) // String f(String name, int age)
		count, params, _ := c.SplitParams(b)
		fmt.Printf("%d %x\n", count, params)
	}
	// Output:
	// 2 0ba34164610524
	// 2 0b00034164610500000024
}
