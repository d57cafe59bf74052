package interceptors

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// TestInterceptor_ParamsStay requires that parameters stay unchanged for interceptors, for calls of
// every size and for memory that is reused, lent, part of the call, or decoded for a key.
func TestInterceptor_ParamsStay(t *testing.T) {
	options := map[string][]asterisque.HandlerOption{
		"plain":    nil,
		"inline":   {asterisque.WithInline()},
		"borrowed": {asterisque.WithBorrowedParams()},
		"key":      {asterisque.WithKey(func(b []byte) int { return len(b) })},
		"gate":     {asterisque.WithConcurrency(1)},
	}
	for how, opts := range options {
		for _, values := range []codec.Values{codec.CBOR, codec.JSON, codec.Raw} {
			for _, looks := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %v, looks before: %v", how, values.Name(), looks), func(t *testing.T) {
					look := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
						var before, result []byte
						if looks {
							before = bytes.Clone(c.Params().([]byte))
						}
						raw, err := c.RawParams()
						if err != nil {
							return err
						}
						copied := bytes.Clone(raw)
						if err := next(ctx, c); err != nil {
							return err
						}
						again, err := c.RawParams()
						if err != nil {
							return err
						}
						after := c.Params().([]byte)
						result = c.Result().([]byte)
						if !looks {
							before = after
						}
						for what, same := range map[string]bool{
							"bytes": bytes.Equal(copied, again), "value": bytes.Equal(before, after), "result": bytes.Equal(result, after),
						} {
							if !same {
								return asterisque.ErrProtocol.Withf("the %s have changed", what)
							}
						}
						return nil
					}
					same := asterisque.Func[[]byte, []byte](40, "same")
					svc := asterisque.NewService()
					same.Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return b, nil }, opts...)
					dialled, accepted := testkit.Connect(t, svc, asterisque.WithCodecs(values), asterisque.WithOutboundInterceptors(look), asterisque.WithInboundInterceptors(look))
					for _, size := range []int{0, 1, 63, 64, 65, 1000, 9000, 70_000} {
						params := bytes.Repeat([]byte{byte(size), 7}, size)[:size]
						for range 3 {
							got, err := same.Call(testkit.Background, dialled, params)
							require.NoError(t, err, "%d bytes", size)
							require.True(t, bytes.Equal(params, got), "%d bytes", size)
						}
					}
					testkit.WantIdle(t, dialled, accepted)
				})
			}
		}
	}
}

// The value and the bytes of a call are separate.
func TestCall_ValueAndBytes(t *testing.T) {
	look := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		raw, err := c.RawParams()
		if err != nil {
			return err
		}
		before := bytes.Clone(raw)
		c.Params().([]byte)[0] = 'v'
		if !bytes.Equal(before, raw) {
			return asterisque.ErrProtocol.Withf("a change of the value changes the bytes, too: %q", raw)
		}
		return next(ctx, c)
	}
	for _, values := range []codec.Values{codec.CBOR, codec.JSON, codec.Raw} {
		same := asterisque.Func[[]byte, []byte](40, "same")
		svc := asterisque.NewService()
		same.Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return b, nil })
		dialled, _ := testkit.Connect(t, svc, asterisque.WithCodecs(values), asterisque.WithInboundInterceptors(look))
		got, err := same.Call(testkit.Background, dialled, []byte("params"))
		require.NoError(t, err, values.Name())
		require.Equal(t, "varams", string(got), values.Name())
	}
}
