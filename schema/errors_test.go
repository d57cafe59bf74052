package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

type (
	loop  *loop
	left  *right
	right *left

	inner    struct{ N int }
	hiding   struct{ *inner }
	stamped  struct{ time.Time }
	unusable struct {
		Done map[string][]*struct{ C chan int }
	}
)

func TestSchema_Errors(t *testing.T) {
	nothing, leave := "has no form in CBOR", "leave a field out with the tag `cbor:\"-\"`"
	key, texts := "is the key of a map, and no name in JSON", "use keys that are texts or integers"
	for _, c := range []struct {
		of                   reflect.Type
		path, reason, wayOut string
	}{
		{reflect.TypeFor[chan int](), "", nothing, leave},
		{reflect.TypeFor[func()](), "", nothing, leave},
		{reflect.TypeFor[complex128](), "", nothing, leave},
		{reflect.TypeFor[unsafe.Pointer](), "", nothing, leave},
		{reflect.TypeFor[[]uintptr](), "[]", nothing, leave},
		{reflect.TypeFor[unusable](), ".Done[][].C", nothing, leave},
		{reflect.TypeFor[*unusable](), ".Done[][].C", nothing, leave},
		{reflect.TypeFor[map[string]error](), "[]", "is an interface with methods", "any or cbor.RawMessage"},
		{reflect.TypeFor[struct{ A, B fmt.Stringer }](), ".A", "is an interface with methods", "carry a struct"},
		{reflect.TypeFor[map[bool]int](), "[key]", key, texts},
		{reflect.TypeFor[map[float64]int](), "[key]", key, texts},
		{reflect.TypeFor[map[any]int](), "[key]", key, texts},
		{reflect.TypeFor[map[[2]int]int](), "[key]", key, texts},
		{reflect.TypeFor[map[*string]int](), "[key]", key, texts},
		{reflect.TypeFor[map[time.Time]int](), "[key]", key, texts},
		{reflect.TypeFor[map[cbor.ByteString]int](), "[key]", key, texts},
		{reflect.TypeFor[map[inner]int](), "[key]", key, texts},
		{reflect.TypeFor[[4097]string](), "", "has more than 4096 elements", "carry a slice"},
		{reflect.TypeFor[struct{ List [][4097]byte }](), ".List[]", "has more than 4096 elements", "carry a slice"},
		{reflect.TypeFor[loop](), "", "points to pointers without end", "carry a value"},
		{reflect.TypeFor[[]*loop](), "[]", "points to pointers without end", "carry a value"},
		{reflect.TypeFor[left](), "", "points to pointers without end", "carry a value"},
		{reflect.TypeFor[cbor.Tag](), "", "has no form in JSON", "carry its content"},
		{reflect.TypeFor[struct{ T cbor.RawTag }](), ".T", "has no form in JSON", "carry its content"},
		{reflect.TypeFor[[]cbor.SimpleValue](), "[]", "has no form in JSON", "carry its content"},
		{reflect.TypeFor[struct {
			N int `cbor:"one,keyasint"`
		}](), "", `has a field N with the tag keyasint, and "one" is no integer`, "correct the tag"},
		{reflect.TypeFor[[]struct {
			N int `cbor:"1,keyasint"`
			M int `cbor:"1"`
		}](), "[]", `has two fields that are both "1" in JSON, one of them as an integer`, "give one another name"},
	} {
		for way, make := range map[string]func(reflect.Type) (asterisque.Schema, error){"in": New().Input, "out": New().Output} {
			s, err := make(c.of)
			require.Empty(t, s, "%v", c.of)
			var e *Error
			require.ErrorAs(t, err, &e, "%v", c.of)
			require.Equal(t, c.of, e.Type, way)
			require.Equal(t, c.path, e.Path, "%v", c.of)
			require.Contains(t, e.Reason, c.reason)
			require.Contains(t, e.WayOut, c.wayOut)
		}
	}
}

func TestSchema_LongestArray(t *testing.T) {
	s, err := New().Input(reflect.TypeFor[[4096]string]())
	require.NoError(t, err)
	require.Less(t, len(s), 200<<10)
}

func TestSchema_SelfEncoding(t *testing.T) {
	for _, c := range []struct {
		of     reflect.Type
		output bool
		reason string
	}{
		{reflect.TypeFor[celsius](), false, "has a form of its own, of UnmarshalCBOR"},
		{reflect.TypeFor[celsius](), true, "has a form of its own, of MarshalCBOR"},
		{reflect.TypeFor[stamped](), false, "has a form of its own, of UnmarshalBinary"},
		{reflect.TypeFor[stamped](), true, "has a form of its own, of MarshalBinary"},
		{reflect.TypeFor[onlyOut](), true, "has a form of its own, of MarshalBinary"},
		{reflect.TypeFor[onlyOut](), false, ""},
		{reflect.TypeFor[map[onlyOut]int](), true, "has a form of its own, of MarshalBinary"},
		{reflect.TypeFor[hiding](), true, ""},
		{reflect.TypeFor[hiding](), false, "is a field of an embedded struct that the codec cannot allocate"},
	} {
		make := New().Input
		if c.output {
			make = New().Output
		}
		_, err := make(c.of)
		if c.reason == "" {
			require.NoError(t, err, "%v", c.of)
			continue
		}
		require.ErrorContains(t, err, c.reason)
	}
	_, err := New().Input(reflect.TypeFor[[]stamped]())
	require.EqualError(t, err, "schema: []schema.stamped has no schema: [], of type schema.stamped, "+
		"has a form of its own, of UnmarshalBinary: say which one with schema.As[schema.stamped]")
	_, err = New().Input(reflect.TypeFor[celsius]())
	require.ErrorContains(t, err, "schema: schema.celsius has no schema: it has a form of its own, of UnmarshalCBOR")
}

// onlyOut encodes itself, and decodes as any text.
type onlyOut string

func (onlyOut) MarshalBinary() ([]byte, error) { return []byte("out"), nil }

func TestAs_BadSchema(t *testing.T) {
	for _, text := range []string{"", "true", "[]", `"string"`, "null", "{", "{} {}", `{"type":`} {
		_, err := New(As[big.Int](text)).Input(reflect.TypeFor[[]big.Int]())
		require.ErrorContains(t, err, "[], of type big.Int, was given a schema that is no JSON object: correct that of schema.As", text)
	}
	s, err := New(As[big.Int](`{"type":"integer","maximum":123456789012345678901234567890}`)).Input(reflect.TypeFor[big.Int]())
	require.NoError(t, err)
	require.True(t, json.Valid([]byte(s)))
	require.Contains(t, s, "123456789012345678901234567890", "numbers stay as they are")

	s, err = New(As[celsius](celsiusSchema)).Input(reflect.TypeFor[celsius]())
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(s), "$schema"))
	s, err = New(As[celsius](celsiusSchema)).Input(reflect.TypeFor[struct {
		C celsius `doc:"outside"`
	}]())
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(s), "description"), "that of the field")
}

func TestDescribe_Panics(t *testing.T) {
	svc := asterisque.NewService()
	asterisque.Stream[int, int, unusable, int](33, "broken").Handle(svc, func(context.Context, int, *asterisque.Pipe[unusable, int]) (int, error) { return 0, nil })
	defer func() {
		text, _ := recover().(string)
		require.Contains(t, text, `function 33 "broken", registered at `)
		require.Contains(t, text, "errors_test.go:")
		require.Contains(t, text, "has no schema of what its callee sends, for which Service.Describe asks at ")
		require.Contains(t, text, "schema: schema.unusable has no schema: .Done[][].C, of type chan int, has no form in CBOR: "+
			"carry something else, or leave a field out with the tag `cbor:\"-\"`")
	}()
	svc.Describe(asterisque.WithSchemas(New()))
	require.Fail(t, "it panics")
}
