package shutdown

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// newsService offers function 60, a stream that ends only when its session drains.
func newsService() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(60, "news", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		p.Post(nil)
		select {
		case <-asterisque.Draining(ctx):
			return []byte("come back"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	return svc
}

// An endless stream gets notice that its session drains.
func TestDraining_EndlessStream(t *testing.T) {
	for name, shutDown := range map[string]func(dialled, accepted *asterisque.Session, here, there *asterisque.Node) error{
		"the session, here":  func(_, s *asterisque.Session, _, _ *asterisque.Node) error { return s.Shutdown(testkit.Background) },
		"the session, there": func(s, _ *asterisque.Session, _, _ *asterisque.Node) error { return s.Shutdown(testkit.Background) },
		"the node":           func(_, _ *asterisque.Session, _, n *asterisque.Node) error { return n.Shutdown(testkit.Background) },
		"the caller's node":  func(_, _ *asterisque.Session, n, _ *asterisque.Node) error { return n.Shutdown(testkit.Background) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there, dialled, accepted := testkit.TwoNodes(t, newsService())
				news, err := dialled.Open(testkit.Background, 60, nil)
				require.NoError(t, err)
				fakeclock.Sleep(time.Hour)
				require.NoError(t, news.Err(), "it runs until a side shuts down")
				begin := time.Now()
				require.NoError(t, shutDown(dialled, accepted, here, there))
				require.Less(t, time.Since(begin), time.Second, "nothing holds it up")
				result, err := news.Result(testkit.Background)
				require.NoError(t, err)
				require.Equal(t, "come back", string(result))
			})
		})
	}
}

// Draining returns nil for a context of no handler.
func TestDraining_OtherContexts(t *testing.T) {
	require.Nil(t, asterisque.Draining(testkit.Background))
	ctx, cancel := context.WithCancel(testkit.Background)
	cancel()
	require.Nil(t, asterisque.Draining(ctx))
}

// Draining works for derived contexts, before and afterwards.
func TestDraining_DerivedContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, goOn := make(chan struct{}), make(chan struct{})
		svc := asterisque.NewService()
		svc.Handle(1, "looks", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
			type key struct{}
			derived, cancel := context.WithCancel(context.WithValue(asterisque.ContextWithMetadata(ctx, asterisque.Metadata{"a": "b"}), key{}, 1))
			cancel()
			before := asterisque.Draining(derived)
			select {
			case <-before:
				t.Error("no side drains yet")
			default:
			}
			close(began)
			<-goOn
			<-before
			<-asterisque.Draining(ctx)
			return nil, nil
		})
		_, _, dialled, _ := testkit.TwoNodes(t, svc)
		answered := make(chan error, 1)
		go func() { _, err := dialled.Call(testkit.Background, 1, nil); answered <- err }()
		<-began
		go dialled.Shutdown(testkit.Background) // ends with the call
		synctest.Wait()
		close(goOn)
		require.NoError(t, <-answered)
	})
}

// A lost session does not drain.
func TestDraining_LostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drained := make(chan bool, 1)
		svc := asterisque.NewService()
		svc.Handle(1, "waits", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
			draining := asterisque.Draining(ctx)
			<-ctx.Done()
			select {
			case <-draining:
				drained <- true
			default:
				drained <- false
			}
			return nil, ctx.Err()
		})
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		a, b := wire.Pipe()
		dialled, accepted := asterisquetest.ConnectOver(t, here, there, a, b)
		_, err := dialled.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		synctest.Wait()
		a.Close()
		<-accepted.Done()
		require.False(t, <-drained)
	})
}
