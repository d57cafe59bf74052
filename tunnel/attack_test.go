package tunnel_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/tunnel"
)

// goroutines counts the goroutines while their number is stable: runtime.NumGoroutine is at times
// far too high while goroutines start and end.
func goroutines() int {
	n, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
	return n
}

// TestAttack_ManyConnections uses a peer that opens connections as fast as it can, and sends
// nothing on them, while there is no Accept.
func TestAttack_ManyConnections(t *testing.T) {
	const backlog = 50
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.ListenConfig{Backlog: backlog}.Listen(svc, number, "test")
		s, accepted := inMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 100}))
		before := goroutines()
		refused := 0
		for range 10_000 {
			p, err := s.Open(background, number, nil)
			require.NoError(t, err)
			synctest.Wait()
			if errors.Is(p.Err(), asterisque.ErrOverloaded) {
				refused++
			}
		}
		attack.Bounded(t, "connections that wait for Accept", accepted.Stats().Running, backlog)
		attack.Bounded(t, "goroutines for them", goroutines()-before, 100+backlog)
		require.Equal(t, 10_000-backlog, refused)
		for range backlog {
			accept(t, ln).Close()
		}
		synctest.Wait()
		require.Zero(t, accepted.Stats().Running)
	})
}

// TestAttack_NeverClosed uses a peer that keeps all its connections: it cannot have more than
// workers, and other connections are accepted.
func TestAttack_NeverClosed(t *testing.T) {
	const workers = 20
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: workers}))
		here := asterisque.NewNode()
		t.Cleanup(func() { here.Close(); there.Close() })
		hostile, honest := attached(t, here, there), attached(t, here, there)
		got := make(chan *tunnel.Conn, 1000)
		go func() {
			for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
				got <- c.(*tunnel.Conn)
			}
		}()
		defer ln.Close()
		for range 200 { // the others wait for a worker
			_, err := hostile.Open(background, number, nil)
			require.NoError(t, err)
		}
		synctest.Wait()
		attack.Bounded(t, "connections of a peer at once", len(got), workers)
		for len(got) > 0 {
			<-got
		}
		dial(t, honest, "honest")
		wantRead(t, <-got, "honest")
	})
}

// TestAttack_EmptyBlocks uses a peer that sends empty Blocks, between some of one byte.
func TestAttack_EmptyBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		ln := tunnel.Listen(svc, number, "test")
		s, _ := inMemory(t, svc)
		p, err := s.Open(background, number, nil)
		require.NoError(t, err)
		go func() {
			for i := range 10_000 {
				if p.Send(background, make([]byte, i%1000/999)) != nil {
					return
				}
			}
			p.CloseSend()
		}()
		got, err := io.ReadAll(accept(t, ln))
		require.NoError(t, err)
		require.Len(t, got, 10)
	})
}

// TestAttack_NeverReads closes connections here while their peer reads nothing: they leave no
// goroutine, and end when the peer ends.
func TestAttack_NeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, leave := asterisque.NewService(), make(chan struct{})
		svc.Handle(number, "sleeper", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { <-leave; return nil, nil })
		s, _ := inMemory(t, svc)
		before := goroutines()
		const conns = 50
		for range conns {
			c, err := tunnel.Dial(background, s, number)
			require.NoError(t, err)
			written := make(chan error)
			go func() { _, err := c.Write(make([]byte, 1<<20)); written <- err }()
			synctest.Wait()
			require.NoError(t, c.Close())
			require.Error(t, <-written)
		}
		synctest.Wait()
		attack.Bounded(t, "goroutines of closed connections, their handlers on the other side apart", goroutines()-before-conns, 0)
		close(leave)
		synctest.Wait()
		require.Empty(t, s.Pipes())
	})
}
