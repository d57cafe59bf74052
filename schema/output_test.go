package schema

import (
	"context"
	"errors"
	"io"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// filler draws values of Go types.
type filler struct{ *rand.Rand }

func (r filler) fill(v reflect.Value, depth int) {
	if !v.CanSet() || r.IntN(8) == 0 {
		return // stays zero
	}
	switch value := v.Addr().Interface().(type) {
	case *time.Time:
		*value = time.Unix(r.Int64N(1e11), r.Int64N(1e9)).In(time.FixedZone("", r.IntN(24*3600)-12*3600))
		return
	case *big.Int:
		value.Lsh(big.NewInt(r.Int64()-r.Int64()), uint(r.IntN(100)))
		return
	case *cbor.RawMessage:
		*value = []byte{0x82, 0x01, 0xf4}
		return
	case *celsius:
		*value = celsius(r.IntN(1999) - 999)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString([]string{"", "text", "✓"}[r.IntN(3)])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> (64 - v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(float32(r.NormFloat64())))
	case reflect.Interface:
		v.Set(reflect.ValueOf([]any{uint8(1), "text", []byte("bytes"), map[string]any{"a": nil}}))
	default:
		r.fillComposed(v, depth)
	}
}

func (r filler) fillComposed(v reflect.Value, depth int) {
	if depth == 0 {
		return
	}
	made := func(t reflect.Type) reflect.Value {
		e := reflect.New(t).Elem()
		r.fill(e, depth-1)
		return e
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(made(v.Type().Elem()).Addr())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			r.fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(4) {
			v.SetMapIndex(made(v.Type().Key()), made(v.Type().Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.fill(v.Field(i), depth-1)
		}
	}
}

func TestOutput_Allowed(t *testing.T) {
	s := New(As[celsius](celsiusSchema))
	for i, c := range contracts {
		t.Run(c.name, func(t *testing.T) {
			given, err := s.Output(c.typ)
			require.NoError(t, err)
			taken, err := s.Input(c.typ)
			require.NoError(t, err)
			_, output := parsed(t, given)
			_, input := parsed(t, taken)
			r := filler{rand.New(rand.NewPCG(uint64(i), 2))}
			for range 200 {
				v := reflect.New(c.typ)
				r.fill(v.Elem(), 6)
				encoded, err := codec.CBOR.Append(nil, v.Interface())
				require.NoError(t, err)
				var back any
				require.NoError(t, cbor.Unmarshal(encoded, &back))
				require.NoError(t, output.Validate(inJSON(back)), "%s is what %x is not", given, encoded)
				require.NoError(t, input.Validate(inJSON(back)), "%s is what %x is not", taken, encoded)
			}
		})
	}
}

func TestOutput_CallerBlocks(t *testing.T) {
	upload := asterisque.Stream[string, numbered, listed, int](20, "upload")
	svc := asterisque.NewService()
	upload.Handle(svc, func(ctx context.Context, _ string, p *asterisque.Pipe[listed, numbered]) (refused int, err error) {
		for {
			switch _, err := p.Recv(ctx); {
			case err == io.EOF:
				return refused, nil
			case errors.Is(err, asterisque.ErrBadParams):
				refused++
			case err != nil:
				return refused, err
			default:
				if err := p.Send(ctx, listed{X: 1}); err != nil {
					return refused, err
				}
			}
		}
	})
	svc.Describe(asterisque.WithSchemas(New()))
	session := connect(t, svc)
	info := described(t, session)["upload"]
	root, sent := parsed(t, info.Sent)
	_, received := parsed(t, info.Received)
	r := newInstances(1, root)
	for range 300 {
		v := r.changed(r.allowed(root, mostDeep), mostDeep)
		block, err := r.encode(root, v)
		if err != nil {
			continue
		}
		call, err := upload.Open(context.Background(), session, "")
		require.NoError(t, err)
		require.NoError(t, call.Untyped().Send(context.Background(), block))
		require.NoError(t, call.CloseSend())
		refused, err := call.Result(context.Background())
		require.NoError(t, err)
		require.Equal(t, sent.Validate(v) != nil, refused == 1, "%s and %s", info.Sent, show(v))
		if refused == 0 {
			answer, err := call.Untyped().Recv(context.Background())
			require.NoError(t, err)
			var back any
			require.NoError(t, cbor.Unmarshal(answer.Payload, &back))
			require.NoError(t, received.Validate(inJSON(back)), "%s", info.Received)
			answer.Release()
		}
	}
}
