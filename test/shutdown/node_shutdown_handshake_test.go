package shutdown

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// stuck is a Wire with a first write that blocks until release is closed, although the peer has
// received it long before.
type stuck struct {
	wire.Wire
	once    sync.Once
	release chan struct{}
}

func (s *stuck) WriteFrames(frames [][]byte) error {
	err := s.Wire.WriteFrames(frames)
	s.once.Do(func() { <-s.release })
	return err
}

// TestShutdown_KnownSession uses a peer that knows of its session, and calls, before the handshake
// has returned on this side, which shuts down just then.
func TestShutdown_KnownSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there, here := asterisque.NewNode(asterisque.WithService(testkit.EchoService())), asterisque.NewNode()
		defer here.Close()
		a, b := wire.Pipe()
		w := &stuck{Wire: b, release: make(chan struct{})}
		accepted := make(chan struct{})
		go func() { // ends with the handshake
			defer close(accepted)
			there.Accept(testkit.Background, w)
		}()
		s, err := here.Attach(testkit.Background, a)
		require.NoError(t, err)
		called := make(chan error)
		go func() { // ends with the call
			_, err := testkit.Echo.Call(testkit.Background, s, "x")
			called <- err
		}()
		synctest.Wait()
		down := make(chan error)
		go func() { down <- there.Shutdown(testkit.Background) }() // ends with the sessions
		synctest.Wait()
		close(w.release)
		if err := <-called; err != nil {
			require.True(t, asterisque.Repeatable(err), "%v", err)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
		}
		require.NoError(t, <-down)
		<-accepted
	})
}

// TestShutdown_Unanswered uses a peer with a handshake that waits for the application.
func TestShutdown_Unanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there, here := asterisque.NewNode(asterisque.WithAccess(asterisque.Access{Accept: func(ctx context.Context, _ asterisque.Peer) (*asterisque.Grant, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})), asterisque.NewNode()
		defer here.Close()
		a, b := wire.Pipe()
		go there.Accept(testkit.Background, b) // ends with the handshake
		attached := make(chan error)
		go func() { // ends with the handshake
			_, err := here.Attach(testkit.Background, a)
			attached <- err
		}()
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, there.Shutdown(testkit.Background))
		require.Less(t, time.Since(begin), time.Second)
		err := <-attached
		require.True(t, errors.Is(err, asterisque.ErrUnavailable), "%v", err)
	})
}

// A node that shuts down begins no session.
func TestShutdown_NoNewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		svc := asterisque.NewService()
		testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) {
			<-hold
			return s, nil
		})
		there, here := asterisque.NewNode(asterisque.WithService(svc)), asterisque.NewNode()
		defer here.Close()
		connected := func() (*asterisque.Session, error) {
			a, b := wire.Pipe()
			go there.Accept(testkit.Background, b) // ends with the handshake
			return here.Attach(testkit.Background, a)
		}
		s, err := connected()
		require.NoError(t, err)
		called := make(chan error)
		go func() { // ends with the call
			_, err := testkit.Echo.Call(testkit.Background, s, "x")
			called <- err
		}()
		synctest.Wait()
		down := make(chan error)
		go func() { down <- there.Shutdown(testkit.Background) }() // ends with the call
		synctest.Wait()

		_, err = connected()
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.True(t, asterisque.Repeatable(err))
		close(hold)
		require.NoError(t, <-called)
		require.NoError(t, <-down)
	})
}
