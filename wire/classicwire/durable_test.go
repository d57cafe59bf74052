package classicwire_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// TestDurable_NotSent requires that calls with a key fail, because the classic protocol has no
// field for a key.
func TestDurable_NotSent(t *testing.T) {
	var ran atomic.Int32
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { ran.Add(1); return s, nil })
	there := newNode(t, classic.Simple, svc)
	url := testkit.Listen(t, there, "classic://127.0.0.1:0", wire.Options{})
	here := newNode(t, classic.Simple, asterisque.NewService())
	conn, err := here.Connect(background, url, asterisque.ReconnectConfig{})
	require.NoError(t, err)
	defer conn.Close()
	session, err := here.Dial(background, url)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		on  asterisque.Caller
		opt asterisque.CallOption
	}{
		"WithDurable on a Connection":       {conn, asterisque.WithDurable()},
		"a key of its own, on a Connection": {conn, asterisque.WithIdempotencyKey([]byte("sixteen bytes..."))},
		"a key of its own, on a Session":    {session, asterisque.WithIdempotencyKey([]byte("sixteen bytes..."))},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := echo.Call(background, c.on, "x", c.opt)
			require.ErrorIs(t, err, codec.ErrBadParams)
			require.True(t, asterisque.Repeatable(err), "it was not sent")
			require.ErrorContains(t, err, "the protocol of the peer carries no idempotency key")
			require.ErrorContains(t, err, "make it without WithDurable and WithIdempotencyKey")
			require.Zero(t, ran.Load())
		})
	}
	_, err = echo.Call(background, conn, "x")
	require.NoError(t, err)
}
