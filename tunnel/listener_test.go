package tunnel_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/tunnel"
)

// dial dials a connection on s, and writes text into it.
func dial(t testing.TB, s asterisque.Caller, text string, opts ...asterisque.CallOption) net.Conn {
	t.Helper()
	c, err := tunnel.Dial(background, s, number, opts...)
	require.NoError(t, err)
	_, err = c.Write([]byte(text))
	require.NoError(t, err)
	return c
}

func accept(t testing.TB, ln net.Listener) net.Conn {
	t.Helper()
	c, err := ln.Accept()
	require.NoError(t, err)
	return c
}

// wantRefused requires that c was refused with want, so that the caller may dial again.
func wantRefused(t testing.TB, c net.Conn, want error) {
	t.Helper()
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, want)
	require.True(t, asterisque.Repeatable(err))
}

// Connections are accepted in order.
func TestAccept_Order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		require.Equal(t, tunnel.Addr(number), ln.Addr())
		s, _ := inMemory(t, svc)
		for i := range 10 {
			dial(t, s, fmt.Sprint(i))
			synctest.Wait() // it has arrived
		}
		for i := range 10 {
			wantRead(t, accept(t, ln), fmt.Sprint(i))
		}
	})
}

// Connections of several sessions are accepted.
func TestAccept_SeveralSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		there := asterisque.NewNode(asterisque.WithService(svc))
		t.Cleanup(func() { there.Close() })
		seen := map[*asterisque.Session]bool{}
		for range 3 {
			here := asterisque.NewNode()
			t.Cleanup(func() { here.Close() })
			dial(t, attached(t, here, there), "x")
			seen[accept(t, ln).(*tunnel.Conn).Session()] = true
		}
		require.Len(t, seen, 3)
	})
}

// Connections beyond the backlog are refused.
func TestBacklog_Refused(t *testing.T) {
	for _, c := range []struct{ backlog, want int }{{0, 128}, {1, 1}, {5, 5}, {-1, 0}, {-100, 0}} {
		synctest.Test(t, func(t *testing.T) {
			svc := asterisque.NewService()
			ln := tunnel.ListenConfig{Backlog: c.backlog}.Listen(svc, number, "test")
			s, _ := inMemory(t, svc)
			for i := range c.want {
				dial(t, s, fmt.Sprint(i))
				synctest.Wait()
			}
			for range 2 {
				wantRefused(t, dial(t, s, ""), asterisque.ErrOverloaded)
			}
			if c.want > 0 { // an accepted connection leaves its place at once
				wantRead(t, accept(t, ln), "0")
				dial(t, s, "in its place")
				synctest.Wait()
				wantRefused(t, dial(t, s, ""), asterisque.ErrOverloaded)
			}
			for i := range max(c.want-1, 0) {
				wantRead(t, accept(t, ln), fmt.Sprint(i+1))
			}
			if c.want > 0 {
				wantRead(t, accept(t, ln), "in its place")
			}
			accepted := make(chan net.Conn)
			go func() { accepted <- accept(t, ln) }()
			synctest.Wait()
			dial(t, s, "to a waiting Accept")
			wantRead(t, <-accepted, "to a waiting Accept")
		})
	}
}

// A closed listener accepts nothing.
func TestListener_Closed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		s, _ := inMemory(t, svc)
		here, there := pair(t, s, ln)
		errs := make(chan error)
		for range 2 {
			go func() { _, err := ln.Accept(); errs <- err }()
		}
		synctest.Wait()
		require.NoError(t, ln.Close())
		require.NoError(t, ln.Close(), "again")
		for range 2 {
			wantError(t, net.ErrClosed, <-errs)
		}
		_, err := ln.Accept()
		wantError(t, net.ErrClosed, err)
		wantRefused(t, dial(t, s, ""), asterisque.ErrUnavailable)

		write(t, here, "accepted connections continue")
		wantRead(t, there, "accepted connections continue")
	})
}

// Close refuses connections that wait for Accept.
func TestListener_CloseRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		s, accepted := inMemory(t, svc)
		a, b := dial(t, s, "a"), dial(t, s, "b")
		synctest.Wait()
		require.NoError(t, ln.Close())
		wantRefused(t, a, asterisque.ErrUnavailable)
		wantRefused(t, b, asterisque.ErrUnavailable)
		synctest.Wait()
		require.Zero(t, accepted.Stats().Running)
		_, err := ln.Accept()
		wantError(t, net.ErrClosed, err)
	})
}

// A connection that ends leaves the queue.
func TestBacklog_EndedConnection(t *testing.T) {
	for name, end := range map[string]func(s *asterisque.Session, cancel func()){
		"session": func(s *asterisque.Session, _ func()) { s.Close() },
		"life":    func(_ *asterisque.Session, cancel func()) { cancel() },
		"TTL":     func(*asterisque.Session, func()) { fakeclock.Sleep(2 * time.Minute) },
	} {
		synctest.Test(t, func(t *testing.T) {
			svc := asterisque.NewService()
			ln := tunnel.ListenConfig{Backlog: 1}.Listen(svc, number, "test")
			there := asterisque.NewNode(asterisque.WithService(svc))
			here := asterisque.NewNode()
			t.Cleanup(func() { here.Close(); there.Close() })
			first, second := attached(t, here, there), attached(t, here, there)
			life, cancel := context.WithCancel(background)
			defer cancel()
			_, err := first.Open(life, number, nil, asterisque.WithTTL(time.Minute))
			require.NoError(t, err, name)
			synctest.Wait()
			end(first, cancel)
			synctest.Wait()
			dial(t, second, "in its place")
			wantRead(t, accept(t, ln), "in its place")
			require.Equal(t, 1, there.Stats().Busy, name)
		})
	}
}

// attached returns the first node's end of a new session between two nodes.
func attached(t testing.TB, here, there *asterisque.Node) *asterisque.Session {
	t.Helper()
	s, _ := joined(t, here, there)
	return s
}

// A connection occupies a worker.
func TestWorker_PerConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		s, accepted := inMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 2}))
		dial(t, s, "a")
		dial(t, s, "b")
		synctest.Wait()
		third := dial(t, s, "c")
		first, _ := accept(t, ln), accept(t, ln)
		require.Equal(t, 2, accepted.Stats().Running)
		got := make(chan net.Conn)
		go func() { got <- accept(t, ln) }()
		synctest.Wait()
		require.Empty(t, got, "there is no worker for it")
		require.NoError(t, first.Close())
		wantRead(t, <-got, "c")
		require.NoError(t, third.Close())
	})
}

// A half-closed connection keeps its worker.
func TestWorker_HalfClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		s, accepted := inMemory(t, svc)
		here, there := pair(t, s, ln)
		require.NoError(t, there.CloseWrite())
		synctest.Wait()
		require.Equal(t, 1, accepted.Stats().Running)
		write(t, here, "still open")
		wantRead(t, there, "still open")
		require.NoError(t, there.CloseRead())
		synctest.Wait()
		require.Equal(t, 1, accepted.Stats().Running)
		require.NoError(t, there.Close())
		synctest.Wait()
		require.Zero(t, accepted.Stats().Running)
		wantEOF(t, here)
	})
}

// WithConcurrency bounds the connections of all peers together.
func TestConcurrency_AllPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test", asterisque.WithConcurrency(2))
		there := asterisque.NewNode(asterisque.WithService(svc))
		t.Cleanup(func() { there.Close() })
		here := asterisque.NewNode()
		t.Cleanup(func() { here.Close() })
		for range 3 {
			dial(t, attached(t, here, there), "x")
		}
		first, _ := accept(t, ln), accept(t, ln)
		synctest.Wait() // for the worker that finds no place for the third
		require.Equal(t, 2, there.Stats().Busy)
		got := make(chan net.Conn)
		go func() { got <- accept(t, ln) }()
		synctest.Wait()
		require.Empty(t, got)
		require.NoError(t, first.Close())
		wantRead(t, <-got, "x")
	})
}

// A call without Blocks is a connection that has ended.
func TestAccept_CallWithoutBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		s, _ := inMemory(t, svc)
		go func() {
			c := accept(t, ln)
			wantEOF(t, c)
			_, err := c.Write([]byte("x"))
			wantError(t, asterisque.ErrStopped, err)
			c.Close()
		}()
		result, err := s.Call(background, number, []byte("parameters are ignored"))
		require.NoError(t, err)
		require.Empty(t, result)
	})
}

// Listen panics for an unusable function, with its places.
func TestListen_Panics(t *testing.T) {
	require.PanicsWithValue(t, `tunnel: Listen for function 80 "web" of a nil Service: make one with asterisque.NewService`, func() { tunnel.Listen(nil, 80, "web") })

	svc := asterisque.NewService()
	tunnel.Listen(svc, 80, "web")
	text := panicOf(t, func() { tunnel.Listen(svc, 80, "other") })
	require.Contains(t, text, `function 80 is registered twice: "other" at `)
	require.Contains(t, text, `and before that "web" at `)
	require.Contains(t, text, "listener_test.go:")
	require.NotContains(t, text, "tunnel/listener.go")

	svc.Remove(80)
	svc.Handle(80, "by hand", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil })
	require.Contains(t, panicOf(t, func() { tunnel.Listen(svc, 80, "web") }), `before that "by hand"`)
	require.Contains(t, panicOf(t, func() { tunnel.Listen(svc, 65535, "standard") }), "give it a lower number")
}

// panicOf returns the text with which f panics.
func panicOf(t *testing.T, f func()) string {
	t.Helper()
	text, ok := outcome(f).(string)
	require.True(t, ok, "it panics with a text")
	return text
}
