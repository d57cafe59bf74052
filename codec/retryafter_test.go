package codec

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetryAfterIsWhatTheOverloadedSideAdvised(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 23 * time.Millisecond, time.Hour} {
		a := OverloadedFor(d, "busy")
		c, err := ParseClose((&Close{Abort: a}).AppendTo(nil))
		require.NoError(t, err)
		got, ok := RetryAfter(fmt.Errorf("wrapped: %w", c.Abort))
		require.True(t, ok)
		require.Equal(t, d, got)
		require.ErrorIs(t, c.Abort, ErrOverloaded)
	}
	got, _ := RetryAfter(OverloadedFor(time.Microsecond, ""))
	require.Equal(t, time.Millisecond, got, "a short time must not become none")
	got, ok := RetryAfter(OverloadedFor(24*24*time.Hour, ""))
	require.True(t, ok)
	require.Equal(t, time.Hour, got, "nobody should sleep for as long as a peer likes")
}

func TestRetryAfterIsUnknownIfNobodyAdvisedIt(t *testing.T) {
	for name, err := range map[string]error{
		"nil":             nil,
		"no Abort":        errors.New("busy"),
		"no detail":       ErrOverloaded,
		"another code":    &Abort{Code: Unavailable, Detail: []byte{1}},
		"detail of other": &Abort{Code: Overloaded, Detail: []byte("text")},
		"more behind":     &Abort{Code: Overloaded, Detail: []byte{1, 1}},
		"cut short":       &Abort{Code: Overloaded, Detail: []byte{0x19, 1}},
	} {
		_, ok := RetryAfter(err)
		require.False(t, ok, name)
	}
}
