package msgpack_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/msgpack"
	"github.com/asterisque-go/asterisque/wire"
)

var (
	echo  = asterisque.Func[request, request](10, "echo")
	total = asterisque.Stream[string, int64, float64, *big.Int](11, "total")
	large = asterisque.Func[int, *big.Int](12, "large")
)

func service() *asterisque.Service {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, r request) (request, error) { return r, nil })
	total.Handle(svc, func(ctx context.Context, _ string, s *asterisque.Pipe[float64, int64]) (*big.Int, error) {
		sum := new(big.Int)
		for n, err := range s.All(ctx) {
			if err != nil {
				return nil, err
			}
			sum.Add(sum, big.NewInt(n))
			if err := s.Send(ctx, float64(n)); err != nil {
				return nil, err
			}
		}
		return sum, nil
	})
	large.Handle(svc, func(_ context.Context, bits int) (*big.Int, error) {
		return new(big.Int).Lsh(big.NewInt(1), uint(bits)), nil
	})
	svc.Health(asterisque.NewHealth())
	svc.Describe()
	return svc
}

// counting counts the values that a codec decodes.
type counting struct {
	codec.Values
	decoded *atomic.Int64
}

func (c counting) Decode(data []byte, v any) error {
	c.decoded.Add(1)
	return c.Values.Decode(data, v)
}

// hangs is the time after which a test fails that waits for an event. It is longer than any slow
// machine needs.
const hangs = 2 * time.Minute

func inTime(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), hangs, fmt.Errorf("%s takes more than %v", t.Name(), hangs))
	t.Cleanup(cancel)
	return ctx
}

// Two nodes agree on MessagePack.
func TestSession_AgreesOnCodec(t *testing.T) {
	for _, c := range []struct {
		name           string
		dials, accepts []codec.Values
		want           string
	}{
		{"both have nothing else", []codec.Values{msgpack.Values}, []codec.Values{msgpack.Values}, "msgpack"},
		{"the dialling side prefers it", []codec.Values{msgpack.Values, codec.CBOR}, []codec.Values{codec.CBOR, msgpack.Values}, "msgpack"},
		{"the dialling side has it as well", []codec.Values{codec.CBOR, msgpack.Values}, []codec.Values{codec.CBOR, msgpack.Values}, "cbor"},
		{"the other side has not got what is preferred", []codec.Values{codec.CBOR, msgpack.Values}, []codec.Values{codec.JSON, msgpack.Values}, "msgpack"},
		{"the other side has not got it", []codec.Values{msgpack.Values, codec.JSON}, []codec.Values{codec.CBOR, codec.JSON}, "json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := inTime(t)
			counts := make(map[string]*atomic.Int64)
			for i, v := range c.dials {
				counts[v.Name()] = new(atomic.Int64)
				c.dials[i] = counting{v, counts[v.Name()]}
			}
			here := asterisque.NewNode(asterisque.WithCodecs(c.dials...), asterisque.WithService(service()))
			there := asterisque.NewNode(asterisque.WithCodecs(c.accepts...), asterisque.WithService(service()))
			t.Cleanup(func() { here.Close(); there.Close() })
			dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
			for _, sess := range []*asterisque.Session{dialled, accepted} {
				want := request{Window: span{N: -5, At: time.Unix(1, 2).UTC(), Tags: []string{"a"}}, Blob: []byte{1}}
				got, err := echo.Call(ctx, sess, want)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			for name, n := range counts { // one result, and one call
				require.EqualValues(t, map[bool]int{true: 2}[name == c.want], n.Load(), name)
			}
		})
	}
}

// The handshake refuses only sides without a common codec.
func TestSession_NoCommonCodec(t *testing.T) {
	ln, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	there := asterisque.NewNode()
	defer there.Close()
	served := make(chan error, 1)
	go func() { served <- there.Serve(t.Context(), ln) }() // ends with the node
	here := asterisque.NewNode(asterisque.WithCodecs(msgpack.Values))
	defer here.Close()
	_, err = here.Dial(inTime(t), ln.URL())
	require.ErrorIs(t, err, asterisque.ErrHandshake)
	require.NoError(t, there.Close())
	<-served
}

func pair(t *testing.T, opts ...asterisque.Option) *asterisque.Session {
	dialled, _ := asterisquetest.Connect(t, service(), append(opts, asterisque.WithCodecs(msgpack.Values))...)
	return dialled
}

// Streams carry numbers exactly.
func TestSession_StreamNumbers(t *testing.T) {
	ctx, sess := inTime(t), pair(t)
	call, err := total.Open(ctx, sess, "")
	require.NoError(t, err)
	for _, n := range []int64{math.MaxInt64, math.MaxInt64, 1, math.MinInt64} {
		require.NoError(t, call.Send(ctx, n))
		back, err := call.Recv(ctx)
		require.NoError(t, err)
		require.Equal(t, float64(n), back)
	}
	require.NoError(t, call.CloseSend())
	sum, err := call.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, "9223372036854775807", sum.String())
}

// An integer beyond 64 bits fails with ErrBadResult.
func TestSession_BigIntegers(t *testing.T) {
	ctx, sess := inTime(t), pair(t)
	got, err := large.Call(ctx, sess, 63)
	require.NoError(t, err)
	require.Equal(t, "9223372036854775808", got.String())
	_, err = large.Call(ctx, sess, 64)
	require.ErrorIs(t, err, asterisque.ErrBadResult)
	require.ErrorContains(t, err, "MessagePack has no type for an integer of more than 64 bits")
}

// The place of a mismatch crosses to the caller.
func TestSession_MismatchPlace(t *testing.T) {
	ctx, sess := inTime(t), pair(t)
	bad := asterisque.Func[map[string]any, request](echo.Number(), "echo")
	_, err := bad.Call(ctx, sess, map[string]any{"window": map[string]any{"n": 300}})
	require.ErrorIs(t, err, asterisque.ErrBadParams)
	require.ErrorContains(t, err, "at .window.n: an integer of 8 bits was expected, and 300 came")
	require.True(t, asterisque.Repeatable(err))
}

// Standard functions work with MessagePack.
func TestSession_StandardFuncs(t *testing.T) {
	ctx, sess := inTime(t), pair(t)
	list, err := asterisque.Describe.Call(ctx, sess, asterisque.DescribeQuery{Functions: []uint16{echo.Number(), large.Number()}})
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "large", list[1].Name)
	states, err := asterisque.CheckHealth.Call(ctx, sess, asterisque.HealthQuery{Parts: []string{""}})
	require.NoError(t, err)
	require.Equal(t, map[string]asterisque.HealthState{"": asterisque.HealthServing}, states)
}
