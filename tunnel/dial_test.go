package tunnel_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/tunnel"
)

// caller is a function that implements asterisque.Caller.
type caller func(ctx context.Context, c *asterisque.Call) error

func (f caller) Invoke(ctx context.Context, c *asterisque.Call) error { return f(ctx, c) }

// The context governs only the dial.
func TestDial_Context(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		s, _ := inMemory(t, svc)
		ctx, cancel := context.WithTimeout(background, time.Second)
		here, err := tunnel.Dial(ctx, s, number)
		require.NoError(t, err)
		cancel()
		fakeclock.Sleep(time.Hour)
		there := accept(t, ln)
		write(t, here, "it lives on")
		wantRead(t, there, "it lives on")
	})
}

// A dial that waits ends with its context.
func TestDial_ContextEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		tunnel.Listen(svc, number, "test")
		s, _ := inMemory(t, svc, asterisque.WithMaxOutstanding(number, 1))
		dial(t, s, "takes the window")
		for _, c := range []struct {
			end     func(context.Context) (context.Context, context.CancelFunc)
			want    error
			timeout bool
		}{
			{func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			}, context.DeadlineExceeded, true},
			{func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, context.Canceled, false},
		} {
			ctx, cancel := c.end(background)
			begin := time.Now()
			for range 2 { // while it waits, and when it is over already
				conn, err := tunnel.Dial(ctx, s, number)
				require.Nil(t, conn)
				wantError(t, c.want, err)
				require.True(t, asterisque.Repeatable(err), "it was never sent")
				timeout, ok := err.(net.Error)
				require.True(t, ok)
				require.Equal(t, c.timeout, timeout.Timeout())
				require.Equal(t, time.Second, time.Since(begin))
			}
			cancel()
		}
	})
}

// A dial that ends with its context leaves nothing behind.
func TestDial_ContextLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		tunnel.Listen(svc, number, "test")
		s, accepted := inMemory(t, svc)
		ctx, cancel := context.WithCancel(background)
		_, err := tunnel.Dial(ctx, caller(func(_ context.Context, c *asterisque.Call) error {
			err := s.Invoke(background, c)
			cancel()
			return err
		}), number)
		wantError(t, context.Canceled, err)
		require.False(t, asterisque.Repeatable(err), "it may have arrived")
		synctest.Wait()
		require.Empty(t, s.Pipes())
		require.Zero(t, accepted.Stats().Running)
	})
}

// Dial on nil is an error.
func TestDial_Nil(t *testing.T) {
	for name, on := range map[string]asterisque.Caller{
		"nothing": nil, "session": (*asterisque.Session)(nil), "connection": (*asterisque.Connection)(nil),
	} {
		c, err := tunnel.Dial(background, on, number)
		require.Nil(t, c, name)
		wantError(t, asterisque.ErrUnavailable, err)
		require.ErrorContains(t, err, "dial asterisque function 80: ")
		require.ErrorContains(t, err, "it is nil")
	}
}

// Dial on an ended session is an error.
func TestDial_EndedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t, asterisque.NewService())
		s.Close()
		_, err := tunnel.Dial(background, s, number)
		wantError(t, asterisque.ErrSessionClosed, err)
		require.True(t, asterisque.Repeatable(err))
	})
}

// Dial to a missing function is an error of the first Read.
func TestDial_NoListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t, asterisque.NewService())
		c, err := tunnel.Dial(background, s, number)
		require.NoError(t, err, "Dial does not wait for the peer")
		wantRefused(t, c, asterisque.ErrNoFunction)
		_, err = c.Write([]byte("x"))
		wantError(t, asterisque.ErrNoFunction, err)
		require.NoError(t, c.Close())
	})
}

func TestDial_Connection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		there := asterisque.NewNode(asterisque.WithService(svc))
		here := asterisque.NewNode()
		t.Cleanup(func() { here.Close(); there.Close() })
		conn, err := here.Connect(background, "", asterisque.ReconnectConfig{Dial: dialInMemory(there)})
		require.NoError(t, err)
		for range 2 {
			c := dial(t, conn, "x").(*tunnel.Conn)
			require.Nil(t, c.Session())
			require.Equal(t, conn.Session().Peer().RemoteAddr, c.RemoteAddr())
			wantRead(t, accept(t, ln), "x")
			conn.Session().Close()
			_, err := c.Read(make([]byte, 1))
			wantError(t, asterisque.ErrSessionClosed, err)
		}
	})
}

// Dial within a handler is a nested call.
func TestDial_WithinHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := asterisque.NewService()
		ln := tunnel.Listen(back, number, "back")
		svc := asterisque.NewService()
		svc.Handle(1, "fetch", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
			c, err := tunnel.Dial(ctx, asterisque.SessionOf(ctx), number)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			return io.ReadAll(c)
		})
		workers := asterisque.WithWorkers(asterisque.Workers{Session: 1})
		here := asterisque.NewNode(workers, asterisque.WithService(back))
		there := asterisque.NewNode(workers, asterisque.WithService(svc))
		t.Cleanup(func() { here.Close(); there.Close() })
		s, accepted := joined(t, here, there)
		_, err := tunnel.Dial(background, accepted, number) // takes the only worker
		require.NoError(t, err)
		accept(t, ln)
		go func() {
			c := accept(t, ln)
			c.Write([]byte("fetched"))
			c.Close()
		}()
		got, err := s.Call(background, 1, nil)
		require.NoError(t, err)
		require.Equal(t, "fetched", string(got))
	})
}

// Dial uses options, and ignores a loss rate.
func TestDial_Options(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		s, _ := inMemory(t, svc)
		var opened *pipe.Pipe
		opts := make([]asterisque.CallOption, 0, 10)
		opts = append(opts, asterisque.WithPriority(7), asterisque.WithLoss(100), asterisque.WithTTL(time.Minute))
		_, err := tunnel.Dial(background, caller(func(life context.Context, c *asterisque.Call) error {
			err := s.Invoke(life, c)
			opened = c.Pipe()
			return err
		}), number, opts...)
		require.NoError(t, err)
		require.EqualValues(t, 7, opened.Priority())
		require.Zero(t, (*piping.End)(opened).Loss())
		require.Zero(t, opts[:4][3], "the caller's slice stays as it is")
		there := accept(t, ln)
		fakeclock.Sleep(2 * time.Minute)
		require.ErrorIs(t, opened.Err(), asterisque.ErrExpired)
		_, err = there.Read(make([]byte, 1))
		require.True(t, errors.Is(err, asterisque.ErrExpired), "%v", err)
	})
}

// Dial on a Caller that opens no pipe is an error.
func TestDial_CallerWithoutPipe(t *testing.T) {
	s, _ := inMemory(t, asterisque.NewService(), silent)
	for name, c := range map[string]struct {
		invoke func(context.Context, *asterisque.Call) error
		want   string
	}{
		"an answer without a pipe": {func(context.Context, *asterisque.Call) error { return nil }, "asterisque"},
		"an error":                 {func(context.Context, *asterisque.Call) error { return errors.New("no line") }, "no line"},
		"a panic":                  {func(context.Context, *asterisque.Call) error { panic("broken") }, "panicked"},
	} {
		conn, err := tunnel.Dial(background, asterisque.Intercept(s, func(ctx context.Context, call *asterisque.Call, _ asterisque.Next) error {
			return c.invoke(ctx, call)
		}), number)
		require.Nil(t, conn, name)
		require.ErrorContains(t, err, c.want, name)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
	}
}
