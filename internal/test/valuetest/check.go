package valuetest

import (
	"errors"
	"math"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
)

var errRefused = errors.New("no")

// Check requires that the codec c carries each value of the table unchanged, or that its sender
// rejects the value and names the place. Values are nested at most depth deep.
func Check(t *testing.T, c codec.Values, depth int) {
	for group, values := range table(depth) {
		for _, v := range values {
			t.Run(group+"/"+v.name, func(t *testing.T) { v.check(t, c) })
		}
	}
}

func table(depth int) map[string][]value {
	return map[string][]value{
		"texts": texts(), "numbers": numbersOf(), "times": times(), "depths": depths(depth), "others": others(),
	}
}

// CheckFew is Check for a codec with few types, such as raw bytes: the table does not fix which of
// its values the codec refuses.
func CheckFew(t *testing.T, c codec.Values, depth int) {
	for group, values := range table(depth) {
		for _, v := range values {
			v.says = map[string]string{all: exact}
			if _, err := c.Append(nil, v.v); err != nil {
				v.says[all] = "asterisque: "
			}
			t.Run(group+"/"+v.name, func(t *testing.T) { v.check(t, c) })
		}
	}
}

// check checks one value, and a pointer to it, which sessions encode.
func (v value) check(t *testing.T, c codec.Values) {
	says, ok := v.says[c.Name()]
	if !ok {
		says = v.says[all]
	}
	pointer := reflect.New(reflect.TypeOf(v.v))
	pointer.Elem().Set(reflect.ValueOf(v.v))
	for _, sent := range []any{v.v, pointer.Interface()} {
		data, err := c.Append([]byte("before"), sent)
		if says != exact {
			require.ErrorContains(t, err, says)
			require.Equal(t, "before", string(data))
			requireOfCodec(t, err)
			continue
		}
		require.NoError(t, err)
		got := reflect.New(reflect.TypeOf(v.v))
		require.NoError(t, c.Decode(data[len("before"):], got.Interface()), "%.100x", data)
		require.True(t, same(reflect.ValueOf(v.v), got.Elem()), "%+v became %+v", v.v, got.Elem())
	}
}

// requireOfCodec requires that the text of err is suitable for a peer.
func requireOfCodec(t *testing.T, err error) {
	if abort := (*codec.Abort)(nil); errors.As(err, &abort) {
		require.Less(t, len(abort.Message), 500)
		return
	}
	var e interface{ Text() string }
	require.ErrorAs(t, err, &e)
	require.Less(t, len(e.Text()), 500)
}

// same reports whether two values are equal: times as instants, and NaN by its bits. A value in an
// interface may arrive with another type.
func same(a, b reflect.Value) bool {
	for a.Kind() == reflect.Interface && !a.IsNil() {
		a = a.Elem()
	}
	for b.Kind() == reflect.Interface && !b.IsNil() {
		b = b.Elem()
	}
	if a.Type() != b.Type() {
		return true // its type cannot be preserved
	}
	switch v := a.Interface().(type) {
	case time.Time:
		return v.Equal(b.Interface().(time.Time))
	case big.Int:
		w := b.Interface().(big.Int)
		return v.Cmp(&w) == 0
	case *big.Rat:
		return v.Cmp(b.Interface().(*big.Rat)) == 0
	case *big.Float:
		return v.Cmp(b.Interface().(*big.Float)) == 0
	case float32:
		return math.Float32bits(v) == math.Float32bits(b.Interface().(float32))
	case float64:
		return math.Float64bits(v) == math.Float64bits(b.Interface().(float64))
	}
	return sameParts(a, b)
}

func sameParts(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.IsNil() || same(a.Elem(), b.Elem()))
	case reflect.Slice, reflect.Array:
		for i := range min(a.Len(), b.Len()) {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return a.Len() == b.Len()
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return a.Len() == b.Len() && sameEntries(a, b)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// sameEntries reports whether each key of a, by its bits, has the same value in b.
func sameEntries(a, b reflect.Value) bool {
	for i := a.MapRange(); i.Next(); {
		found := false
		for j := b.MapRange(); j.Next(); {
			found = found || same(i.Key(), j.Key()) && same(i.Value(), j.Value())
		}
		if !found {
			return false
		}
	}
	return true
}
