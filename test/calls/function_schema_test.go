package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// namer makes schemas that only name the requested type, except for channels.
type namer struct {
	mu   sync.Mutex
	made map[string]int // guarded by mu; how often
}

func (n *namer) Input(t reflect.Type) (asterisque.Schema, error)  { return n.make("in", t) }
func (n *namer) Output(t reflect.Type) (asterisque.Schema, error) { return n.make("out", t) }

func (n *namer) make(way string, t reflect.Type) (asterisque.Schema, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := fmt.Sprintf("%s %v", way, t)
	if n.made == nil {
		n.made = make(map[string]int)
	}
	n.made[s]++
	switch {
	case t.Kind() == reflect.Chan:
		return "", errors.New("there is none, make it a list")
	case t.Kind() == reflect.Complex64:
		return "{", nil
	case t.Kind() == reflect.Uintptr:
		return "", nil
	}
	return asterisque.Schema(fmt.Sprintf(`{"title":%q}`, s)), nil
}

var mix = asterisque.Stream[string, int, float64, bool](12, "mix")

func handleMix(svc *asterisque.Service) {
	mix.Handle(svc, func(context.Context, string, *asterisque.Pipe[float64, int]) (bool, error) { return true, nil })
}

// Describe has the schemas of parameters, elements and results.
func TestSchema_OfFunctions(t *testing.T) {
	for _, c := range []struct {
		when string
		make func(*asterisque.Service, func())
	}{
		{"of functions that are there", func(svc *asterisque.Service, describe func()) { handleMix(svc); describe() }},
		{"of those that come later", func(svc *asterisque.Service, describe func()) { describe(); handleMix(svc) }},
	} {
		t.Run(c.when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, made := testkit.EchoService(), new(namer)
				svc.Handle(13, "untyped", noHandler)
				asterisque.Func[uintptr, int](14, "silent").Handle(svc, func(context.Context, uintptr) (int, error) { return 0, nil })
				c.make(svc, func() { svc.Describe(asterisque.WithSchemas(made)) })
				dialled, _ := testkit.InMemory(t, svc)
				for range 3 {
					list, err := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{})
					require.NoError(t, err)
					require.Equal(t, svc.Functions(), list)
					require.Equal(t, []asterisque.FunctionInfo{
						{Number: 10, Name: "echo", Signature: "func(string) string", Params: `{"title":"in string"}`, Result: `{"title":"out string"}`},
						{Number: 12, Name: "mix", Signature: "func(string) bool, caller sends int, callee sends float64",
							Params: `{"title":"in string"}`, Result: `{"title":"out bool"}`, Sent: `{"title":"in int"}`, Received: `{"title":"out float64"}`},
						{Number: 13, Name: "untyped", Signature: "func([]byte) []byte, Blocks both ways"},
						{Number: 14, Name: "silent", Signature: "func(uintptr) int", Result: `{"title":"out int"}`},
					}, list[:4])
				}
				require.Equal(t, 1, made.made["in int"], "it is made once, and not for each call")
			})
		})
	}
}

// Describe returns only the requested fields.
func TestDescribe_OnlyWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := testkit.EchoService()
		handleMix(svc)
		svc.Describe(asterisque.WithSchemas(new(namer)))
		dialled, _ := testkit.InMemory(t, svc)
		for _, c := range []struct {
			query asterisque.DescribeQuery
			want  string
		}{
			{asterisque.DescribeQuery{}, "10+ 12+ 65535+"},
			{asterisque.DescribeQuery{NoSchemas: true}, "10 12 65535"},
			{asterisque.DescribeQuery{Functions: []uint16{12}}, "12+"},
			{asterisque.DescribeQuery{Functions: []uint16{65_535, 10, 11, 10, 10}, NoSchemas: true}, "10 65535"},
			{asterisque.DescribeQuery{Functions: []uint16{11}}, ""},
		} {
			list, err := asterisque.Describe.Call(testkit.Background, dialled, c.query)
			require.NoError(t, err)
			var got []string
			for _, f := range list {
				s := fmt.Sprint(f.Number)
				if f.Params != "" {
					s += "+"
				}
				got = append(got, s)
			}
			require.Equal(t, c.want, strings.Join(got, " "), "%+v", c.query)
		}
	})
}

// Schemas are of CBOR, and only described if that codec is used.
func TestSchema_OnlyOfCBOR(t *testing.T) {
	for _, values := range []codec.Values{codec.CBOR, codec.JSON} {
		synctest.Test(t, func(t *testing.T) {
			svc := testkit.EchoService()
			svc.Describe(asterisque.WithSchemas(new(namer)))
			dialled, _ := testkit.InMemory(t, svc, asterisque.WithCodecs(values))
			list, err := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{})
			require.NoError(t, err)
			require.Equal(t, "echo", list[0].Name)
			require.Equal(t, values == codec.CBOR, list[0].Params != "", values.Name())
		})
	}
}

// A description that is too large can be requested in pieces.
func TestDescribe_InPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		for n := range uint16(10) {
			asterisque.Func[[100]struct{}, []byte](n, "function").Handle(svc, func(context.Context, [100]struct{}) ([]byte, error) { return nil, nil })
		}
		svc.Describe(asterisque.WithSchemas(new(namer)))
		here := asterisque.NewNode(asterisque.WithLimits(asterisque.Limits{MaxMessage: 1024}))
		there := asterisque.NewNode(asterisque.WithService(svc))
		defer there.Close()
		defer here.Close()
		dialled, _ := asterisquetest.ConnectNodes(t, here, there)
		_, err := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{})
		require.ErrorIs(t, err, asterisque.ErrTooLarge)
		list, err := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{NoSchemas: true})
		require.NoError(t, err)
		require.Len(t, list, 11)
		list, err = asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{Functions: []uint16{3, 4}})
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.NotEmpty(t, list[1].Result)
	})
}

// A type without a schema panics if the program requests it.
func TestSchema_Missing(t *testing.T) {
	for _, c := range []struct {
		name, part, why string
		register        func(*asterisque.Service)
	}{
		{"of parameters", "its parameters", "there is none, make it a list", func(svc *asterisque.Service) {
			asterisque.Func[chan int, int](20, "odd").Handle(svc, func(context.Context, chan int) (int, error) { return 0, nil })
		}},
		{"of a result", "its result", "there is none, make it a list", func(svc *asterisque.Service) {
			asterisque.Func[int, chan int](20, "odd").Handle(svc, func(context.Context, int) (chan int, error) { return nil, nil })
		}},
		{"of a Block of the caller", "what its caller sends", "there is none, make it a list", func(svc *asterisque.Service) {
			asterisque.Stream[int, chan int, int, int](20, "odd").Handle(svc, func(context.Context, int, *asterisque.Pipe[int, chan int]) (int, error) { return 0, nil })
		}},
		{"of a Block of the callee", "what its callee sends", "there is none, make it a list", func(svc *asterisque.Service) {
			asterisque.Stream[int, int, chan int, int](20, "odd").Handle(svc, func(context.Context, int, *asterisque.Pipe[chan int, int]) (int, error) { return 0, nil })
		}},
		{"of which something else is made", "its parameters", "the schema of complex64 is not JSON", func(svc *asterisque.Service) {
			asterisque.Func[complex64, int](20, "odd").Handle(svc, func(context.Context, complex64) (int, error) { return 0, nil })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			early, late := asterisque.NewService(), asterisque.NewService()
			c.register(early)
			place := line(1)
			text := testkit.PanicOf(t, func() { early.Describe(asterisque.WithSchemas(new(namer))) })
			require.Contains(t, text, `function 20 "odd", registered at `)
			require.Contains(t, text, "has no schema of "+c.part+", for which Service.Describe asks at "+place+": "+c.why)

			place = line(1)
			late.Describe(asterisque.WithSchemas(new(namer)))
			text = testkit.PanicOf(t, func() { c.register(late) })
			require.Contains(t, text, "has no schema of "+c.part+", for which Service.Describe asks at "+place+": "+c.why)
			require.Len(t, late.Functions(), 1, "it is not registered")

			plain := asterisque.NewService()
			c.register(plain)
			plain.Describe()
			require.Len(t, plain.Functions(), 2, "without schemas, none are needed")
		})
	}
}

// Functions may be registered while others are described.
func TestDescribe_NewFunctions(t *testing.T) {
	svc, made := asterisque.NewService(), new(namer)
	var registering sync.WaitGroup
	for n := range uint16(200) {
		registering.Go(func() {
			asterisque.Func[int, int](n, "").Handle(svc, add)
			svc.Functions()
		})
	}
	svc.Describe(asterisque.WithSchemas(made))
	registering.Wait()
	list := svc.Functions()
	require.Len(t, list, 201)
	for _, f := range list {
		require.NotEmpty(t, f.Params, "function %d", f.Number)
		require.NotEmpty(t, f.Result, "function %d", f.Number)
	}
}

// A schema is embedded in JSON, not a text.
func TestSchema_InJSON(t *testing.T) {
	f := asterisque.FunctionInfo{Number: 7, Name: "n", Params: `{"type": "string"}`}
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.Equal(t, `{"number":7,"name":"n","signature":"","params":{"type":"string"}}`, string(text))
	var back asterisque.FunctionInfo
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, asterisque.Schema(`{"type":"string"}`), back.Params)
	require.Empty(t, back.Result)
	_, err = json.Marshal(asterisque.Schema("{"))
	require.Error(t, err)
}

// Describe works within a context of an interceptor.
func TestDescribe_InterceptorContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := testkit.EchoService()
		svc.Describe(asterisque.WithSchemas(new(namer)))
		svc.Intercept(func(_ context.Context, c *asterisque.Call, next asterisque.Next) error {
			return next(testkit.Background, c)
		})
		dialled, _ := testkit.InMemory(t, svc)
		list, err := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{})
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Empty(t, list[0].Params, "the codec is unknown")
	})
}
