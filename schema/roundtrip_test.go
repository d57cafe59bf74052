package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/wire"
)

// contract is a function that returns its parameter, of some type.
type contract struct {
	name    string
	typ     reflect.Type
	handle  func(*asterisque.Service, uint16)
	anyYear bool // it has times
}

func of[T any](name string) contract {
	return contract{name: name, typ: reflect.TypeFor[T](), handle: func(svc *asterisque.Service, number uint16) {
		asterisque.Func[T, T](number, name).Handle(svc, func(_ context.Context, v T) (T, error) { return v, nil })
	}}
}

func ofTimes[T any](name string) contract {
	c := of[T](name)
	c.anyYear = true
	return c
}

var contracts = []contract{
	of[bool]("bool"), of[string]("string"), of[myString]("named string"), of[int]("int"), of[int8]("int8"), of[myInt]("named int16"),
	of[int32]("int32"), of[int64]("int64"), of[uint]("uint"), of[uint8]("uint8"), of[uint16]("uint16"), of[uint32]("uint32"),
	of[uint64]("uint64"), of[float32]("float32"), of[float64]("float64"), of[time.Duration]("duration"),
	of[[]byte]("bytes"), of[myBytes]("named bytes"), of[[]myByte]("bytes of a named type"), of[[4]byte]("array of bytes"), of[hash]("hash"),
	of[[]int8]("list"), of[names]("named list"), of[[]*string]("list of pointers"), of[[3]int8]("array"), of[[0]int]("empty array"),
	of[[1]string]("array of one"), of[[20][]byte]("array of bytes in lists"), of[[2][2]bool]("array of arrays"),
	of[map[string]int8]("map"), of[map[myString][]string]("map of lists"), of[map[int8]string]("map by int8"), of[map[uint8]bool]("map by uint8"),
	of[map[int16]any]("map by int16"), of[map[int]int]("map by int"), of[map[uint64]string]("map by uint64"), of[map[int64]map[uint16]bool]("maps by integers"),
	of[*int]("pointer"), of[**plain]("pointer to a pointer"), of[struct{}]("nothing"), of[plain]("struct"), of[tagged]("struct with tags"),
	of[numbered]("struct by integers"), of[listed]("struct as an array"), of[[]listed]("structs as arrays"), of[embeds]("struct with others"),
	of[shadow]("struct with hidden fields"),
	of[twice]("struct with another one twice"), of[listing]("struct with another one as an array"),
	ofTimes[special]("what JSON does not have"), of[struct{ A, B []plain }]("struct without a name"),
	of[tree]("tree"), of[*tree]("pointer to a tree"), of[ping]("two types in a circle"), of[nest]("list of itself"), of[maze]("map of itself"),
	of[page[tagged]]("generic struct"), of[struct {
		A page[int]
		B page[string]
	}]("two of a generic type"), of[größe]("name that is not ASCII"), of[[]größe]("list of such a name"),
	ofTimes[time.Time]("time"), ofTimes[*time.Time]("pointer to a time"), ofTimes[[]time.Time]("times"), of[big.Int]("large integer"),
	of[any]("any"), of[[]any]("list of any"), of[map[string]any]("map of any"), of[[2]any]("array of any"), of[cbor.RawMessage]("raw"), of[cbor.ByteString]("byte string"),
	of[celsius]("form of its own"), of[[]celsius]("list of those"), of[struct {
		C celsius  `doc:"outside"`
		P *celsius `cbor:"p"`
	}]("struct of those"),
}

// offer returns a service with all contracts and their descriptions.
func offer() *asterisque.Service {
	svc := asterisque.NewService()
	for i, c := range contracts {
		c.handle(svc, uint16(i))
	}
	svc.Describe(asterisque.WithSchemas(New(As[celsius](celsiusSchema))))
	return svc
}

// connect returns a session with a node that serves svc.
func connect(t testing.TB, svc *asterisque.Service) *asterisque.Session {
	t.Helper()
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
	t.Cleanup(func() { here.Close(); there.Close() })
	a, b := wire.Pipe()
	accepted := make(chan error, 1)
	go func() {
		_, err := there.Accept(context.Background(), b)
		accepted <- err
	}()
	s, err := here.Attach(context.Background(), a)
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	return s
}

// parsed returns a schema as a JSON value, and a validator for it.
func parsed(t testing.TB, s asterisque.Schema) (document, *validator.Schema) {
	t.Helper()
	v, err := validator.UnmarshalJSON(strings.NewReader(string(s)))
	require.NoError(t, err)
	require.Equal(t, draft, v.(document)["$schema"], "%s", s)
	c := validator.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", v))
	valid, err := c.Compile("schema.json")
	require.NoError(t, err, "%s", s)
	return v.(document), valid
}

// described returns the descriptions of a service's functions, by name.
func described(t testing.TB, s *asterisque.Session) map[string]asterisque.FunctionInfo {
	t.Helper()
	list, err := asterisque.Describe.Call(context.Background(), s, asterisque.DescribeQuery{})
	require.NoError(t, err)
	by := make(map[string]asterisque.FunctionInfo)
	for _, f := range list {
		by[f.Name] = f
	}
	require.Len(t, by, len(list))
	return by
}

// drawn is the number of values of each kind.
var drawn = map[bool]int{false: 300, true: 50}[race.Enabled]

func TestInput_Exact(t *testing.T) {
	session := connect(t, offer())
	functions := described(t, session)
	for i, c := range contracts {
		t.Run(c.name, func(t *testing.T) {
			f := functions[c.name]
			root, valid := parsed(t, f.Params)
			_, result := parsed(t, f.Result)
			r := newInstances(uint64(i), root)
			allowed, forbidden := 0, 0
			try := func(v any) {
				refused := valid.Validate(v)
				params, err := r.encode(root, v)
				if err != nil {
					require.Error(t, refused, "%s allows %s, which has no form", f.Params, show(v))
					forbidden++
					return
				}
				answer, err := session.Call(context.Background(), f.Number, params)
				if refused != nil {
					require.ErrorIs(t, err, asterisque.ErrBadParams, "%s forbids %s (%x): %v", f.Params, show(v), params, refused)
					forbidden++
					return
				}
				allowed++
				var back any
				if c.anyYear && (errors.Is(err, asterisque.ErrBadResult) || err == nil && cbor.Unmarshal(answer, &back) != nil) {
					return // it was decoded, but RFC 3339 has no such year
				}
				require.NoError(t, err, "%s allows %s (%x)", f.Params, show(v), params)
				require.NoError(t, cbor.Unmarshal(answer, &back))
				require.NoError(t, result.Validate(inJSON(back)), "%s is what came back: %x", f.Result, answer)
			}
			for range drawn {
				v := r.allowed(root, mostDeep)
				require.NoError(t, valid.Validate(v), "%s does not allow %s", f.Params, show(v))
				try(v)
				try(r.changed(v, mostDeep))
				try(r.anything(mostDeep))
			}
			require.GreaterOrEqual(t, allowed, drawn)
			if root["type"] != nil {
				require.Greater(t, forbidden, drawn/4, "%d were allowed", allowed)
			}
		})
	}
}

// inJSON converts a decoded CBOR value to JSON, by the rules in the package documentation.
func inJSON(v any) any {
	switch v := v.(type) {
	case map[any]any:
		object := document{}
		for k, e := range v {
			object[fmt.Sprint(k)] = inJSON(e)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = inJSON(e)
		}
		return list
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case nil, bool, string:
		return v
	case big.Int:
		return json.Number(v.String())
	case cbor.Tag:
		return inJSON(v.Content)
	}
	b, err := json.Marshal(v) // numbers, and bytes as base64
	if err != nil {
		panic(errors.Join(err, fmt.Errorf("of a %T", v)))
	}
	back, err := validator.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		panic(err)
	}
	return back
}
