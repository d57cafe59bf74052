package testkit

import (
	"context"
	"errors"
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/stretchr/testify/require"
)

// Outcome returns err as one word.
func Outcome(err error) string {
	var a *asterisque.Abort
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &a):
		return a.Code.String()
	case errors.Is(err, context.Canceled): // from a handler, whose error is reported unchanged
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "expired"
	default:
		return err.Error()
	}
}

// PanicOf returns the text of the panic of f.
func PanicOf(t *testing.T, f func()) (text string) {
	t.Helper()
	defer func() {
		text, _ = recover().(string)
		require.NotEmpty(t, text, "it panics with a text")
	}()
	f()
	return ""
}
