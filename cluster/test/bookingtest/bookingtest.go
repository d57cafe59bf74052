// Package bookingtest has a service for tests of calls that run once: [Book], and [Rebook], which
// may run more than once. A [Service] counts the calls that have begun, at any of its nodes.
// [RequireUnused] and [RequireMayHaveRun] tell apart whether a failed call can be repeated.
package bookingtest

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// Book runs once for each call. Rebook may run more than once.
var (
	Book   = asterisque.Func[int, string](20, "book")
	Rebook = asterisque.Func[int, string](21, "rebook")
)

// Handler is the handler of both functions at one node.
type Handler func(ctx context.Context, n int) (string, error)

// Answers returns a handler that answers with a text.
func Answers(text string) Handler {
	return func(context.Context, int) (string, error) { return text, nil }
}

// Holds returns a handler that answers after release, or at the end of its context.
func Holds(text string) (f Handler, release func()) {
	free := make(chan struct{})
	f = func(ctx context.Context, _ int) (string, error) {
		select {
		case <-free:
			return text, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return f, func() { close(free) }
}

// Service makes the services of several nodes.
type Service struct {
	Runs   atomic.Int64           // calls that have begun, at any node
	Within asterisque.Interceptor // interceptor of the functions of the next node; nil: none
}

// With returns an option by which a node runs the functions with f.
func (s *Service) With(f Handler) asterisque.Option {
	svc := asterisque.NewService()
	if s.Within != nil {
		svc.Intercept(s.Within)
	}
	counted := func(ctx context.Context, n int) (string, error) {
		s.Runs.Add(1)
		return f(ctx, n)
	}
	Book.Handle(svc, counted)
	Rebook.Handle(svc, counted)
	return asterisque.WithService(svc)
}

// Key returns a random idempotency key.
func Key() []byte { return []byte(rand.Text()[:16]) }

// RequireUnused expects that a call was rejected before it ran.
func RequireUnused(t testing.TB, want error, err error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	require.True(t, asterisque.Repeatable(err), "%v", err)
}

// RequireMayHaveRun expects that a call may have run.
func RequireMayHaveRun(t testing.TB, want error, err error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	require.False(t, asterisque.Repeatable(err), "%v", err)
}

// Outcome is the outcome of a call on another goroutine.
type Outcome struct {
	Text string
	Err  error
}

// Begins makes a call by book on another goroutine, and returns once that number of calls has begun
// in total.
func (s *Service) Begins(t testing.TB, runs int64, book func() (string, error)) <-chan Outcome {
	t.Helper()
	out := make(chan Outcome, 1)
	go func() { // ends with the call
		text, err := book()
		out <- Outcome{text, err}
	}()
	require.Eventually(t, func() bool { return s.Runs.Load() == runs }, natstest.Timeout, time.Millisecond)
	return out
}

// RequireText expects that a call has succeeded.
func RequireText(t testing.TB, want string, out <-chan Outcome) {
	t.Helper()
	select {
	case got := <-out:
		require.NoError(t, got.Err)
		require.Equal(t, want, got.Text)
	case <-time.After(natstest.Timeout):
		t.Fatal("the call is not over")
	}
}
