package codec_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
)

// RetryAfter returns the advice of the overloaded side.
func TestRetryAfter_Advised(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 23 * time.Millisecond, time.Hour} {
		a := codec.OverloadedFor(d, "busy")
		c, err := message.ParseClose((&message.Close{Abort: a}).AppendTo(nil))
		require.NoError(t, err)
		got, ok := codec.RetryAfter(fmt.Errorf("wrapped: %w", c.Abort))
		require.True(t, ok)
		require.Equal(t, d, got)
		require.ErrorIs(t, c.Abort, codec.ErrOverloaded)
	}
	got, _ := codec.RetryAfter(codec.OverloadedFor(time.Microsecond, ""))
	require.Equal(t, time.Millisecond, got, "a short time must not become none")
	got, ok := codec.RetryAfter(codec.OverloadedFor(24*24*time.Hour, ""))
	require.True(t, ok)
	require.Equal(t, time.Hour, got, "a peer cannot choose an arbitrary wait")
}

// RetryAfter is false without an advice.
func TestRetryAfter_NotAdvised(t *testing.T) {
	for name, err := range map[string]error{
		"nil":             nil,
		"no Abort":        errors.New("busy"),
		"no detail":       codec.ErrOverloaded,
		"another code":    &codec.Abort{Code: codec.Unavailable, Detail: []byte{1}},
		"detail of other": &codec.Abort{Code: codec.Overloaded, Detail: []byte("text")},
		"more behind":     &codec.Abort{Code: codec.Overloaded, Detail: []byte{1, 1}},
		"cut short":       &codec.Abort{Code: codec.Overloaded, Detail: []byte{0x19, 1}},
	} {
		_, ok := codec.RetryAfter(err)
		require.False(t, ok, name)
	}
}
