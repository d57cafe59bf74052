package asterisque_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// twoNodes returns two connected nodes, of which there offers svc. They close with the test.
func twoNodes(t *testing.T, svc *asterisque.Service, opts ...asterisque.Option) (here, there *asterisque.Node, dialled, accepted *asterisque.Session) {
	t.Helper()
	here, there = asterisque.NewNode(), asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, accepted = asterisquetest.ConnectNodes(t, here, there)
	return here, there, dialled, accepted
}

// newsService offers function 60, a stream that never ends by itself, until its session drains.
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

func TestAnEndlessStreamLearnsThatItsSessionDrains(t *testing.T) {
	for name, shutDown := range map[string]func(dialled, accepted *asterisque.Session, here, there *asterisque.Node) error{
		"the session, here":  func(_, s *asterisque.Session, _, _ *asterisque.Node) error { return s.Shutdown(background) },
		"the session, there": func(s, _ *asterisque.Session, _, _ *asterisque.Node) error { return s.Shutdown(background) },
		"the node":           func(_, _ *asterisque.Session, _, n *asterisque.Node) error { return n.Shutdown(background) },
		"the caller's node":  func(_, _ *asterisque.Session, n, _ *asterisque.Node) error { return n.Shutdown(background) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there, dialled, accepted := twoNodes(t, newsService())
				news, err := dialled.Open(background, 60, nil)
				require.NoError(t, err)
				time.Sleep(time.Hour)
				require.NoError(t, news.Err(), "it runs as long as nobody shuts down")
				begin := time.Now()
				require.NoError(t, shutDown(dialled, accepted, here, there))
				require.Less(t, time.Since(begin), time.Second, "nothing holds it up")
				result, err := news.Result(background)
				require.NoError(t, err)
				require.Equal(t, "come back", string(result))
			})
		})
	}
}

func TestWhatIsNoHandlersContextNeverDrains(t *testing.T) {
	require.Nil(t, asterisque.Draining(background))
	ctx, cancel := context.WithCancel(background)
	cancel()
	require.Nil(t, asterisque.Draining(ctx))
}

func TestDrainingIsThereForDerivedContextsAndBeforeAndAfterwards(t *testing.T) {
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
				t.Error("nobody drains yet")
			default:
			}
			close(began)
			<-goOn
			<-before
			<-asterisque.Draining(ctx)
			return nil, nil
		})
		_, _, dialled, _ := twoNodes(t, svc)
		answered := make(chan error, 1)
		go func() { _, err := dialled.Call(background, 1, nil); answered <- err }()
		<-began
		go dialled.Shutdown(background) // ends with the call
		synctest.Wait()
		close(goOn)
		require.NoError(t, <-answered)
	})
}

func TestALostSessionDoesNotDrain(t *testing.T) {
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
		_, err := dialled.Open(background, 1, nil)
		require.NoError(t, err)
		synctest.Wait()
		a.Close()
		<-accepted.Done()
		require.False(t, <-drained)
	})
}
