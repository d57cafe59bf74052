package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
)

// runOn runs a command on the peer of a session, and follows it.
func runOn(ctx context.Context, on asterisque.Caller, c command, each func(int)) (int, error) {
	return follow(ctx, func(ctx context.Context) (lines, error) { return execute.Open(ctx, on, c) }, each)
}

func TestCommands(t *testing.T) {
	a := &agent{name: "agent-01", tally: new(tally)}
	sess, _ := asterisquetest.Connect(t, a.service())
	for _, c := range []struct {
		command command
		lines   int
		err     error
	}{
		{command{Name: "env"}, 3, nil},
		{command{Name: "count", Lines: 5}, 5, nil},
		{command{Name: "count"}, 0, nil},
		{command{Name: "count", Lines: -1}, 0, asterisque.ErrBadParams},
		{command{Name: "count", Lines: mostLines + 1}, 0, asterisque.ErrBadParams},
		{command{Name: "rm"}, 0, asterisque.ErrBadParams},
		{command{}, 0, asterisque.ErrBadParams},
	} {
		n, err := runOn(t.Context(), sess, c.command, nil)
		require.ErrorIs(t, err, c.err)
		require.Equal(t, c.lines, n, c.command)
	}
	require.Zero(t, a.running.Load())
}

// A watch ends when its session drains.
func TestWatch_EndsWithDrain(t *testing.T) {
	a := &agent{name: "agent-01", tally: new(tally)}
	sess, _ := asterisquetest.Connect(t, a.service())
	shut := make(chan error, 1)
	n, err := runOn(t.Context(), sess, command{Name: "watch"}, func(n int) {
		if n == 2 {
			go func() { shut <- sess.Shutdown(context.Background()) }()
		}
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 2)
	require.NoError(t, <-shut, "nothing was cut")
}

// A missing line is a failure.
func TestFollow_MissingLine(t *testing.T) {
	svc := asterisque.NewService()
	execute.Handle(svc, func(ctx context.Context, _ command, out *asterisque.Pipe[string, struct{}]) (int, error) {
		return 3, out.Send(ctx, "one")
	})
	sess, _ := asterisquetest.Connect(t, svc)
	n, err := runOn(t.Context(), sess, command{}, nil)
	require.ErrorContains(t, err, "3 lines were sent, and 1 came")
	require.Equal(t, 1, n)
}

// A command that ends before its cancellation is a failure.
func TestFollow_EndsTooEarly(t *testing.T) {
	svc := asterisque.NewService()
	execute.Handle(svc, func(context.Context, command, *asterisque.Pipe[string, struct{}]) (int, error) { return 0, nil })
	c := &controller{servers: []*server{nodeWith(t, svc, "agent-01")}, tally: new(tally)}
	require.ErrorContains(t, c.cancelOne(t.Context(), "agent-01"), "came to its end")
}

// Only a call that certainly did not run is made through another server.
func TestGoesOn_OnlyIfNotRun(t *testing.T) {
	for _, err := range []error{nil, io.EOF, errors.New("x"), asterisque.ErrBadParams, asterisque.ErrPanicked, asterisque.ErrNoFunction} {
		require.False(t, goesOn(err), err)
	}
}

// nodeWith returns a server that offers svc, with one agent connected to it.
func nodeWith(t *testing.T, svc *asterisque.Service, agent string) *server {
	srv := newServer("a", "", nil, slog.New(slog.DiscardHandler))
	srv.node = asterisque.NewNode(asterisque.WithHooks(srv.roster.hooks()), asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Subject: agent}, nil
	}}))
	srv.state = "serving"
	there := asterisque.NewNode(asterisque.WithService(svc))
	t.Cleanup(func() { there.Close(); srv.node.Close() })
	asterisquetest.ConnectNodes(t, there, srv.node)
	return srv
}
