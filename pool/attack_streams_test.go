package pool_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// ticks yields numbers until its context ends, or rejects the call.
var ticks = asterisque.Stream[int, struct{}, int, struct{}](2, "ticks")

// inMemory starts a node on mem:// with the service svc. The caller closes it before the test's
// bubble ends.
func inMemory(t *testing.T, name string, svc *asterisque.Service, opts ...asterisque.Option) (url string, node *asterisque.Node) {
	node = asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	ln, err := wire.Listen(background, "mem://"+name, wire.Options{})
	require.NoError(t, err)
	go node.Serve(background, ln) // ends with the node
	return "mem://" + name, node
}

// only returns the state of the pool's only server.
func only(t *testing.T, p *pool.Pool) pool.Server {
	require.Len(t, p.Servers(), 1)
	return p.Servers()[0]
}

// TestStreams_Outstanding ends a stream in different ways.
func TestStreams_Outstanding(t *testing.T) {
	type stream = asterisque.StreamCall[struct{}, int, struct{}]
	for name, end := range map[string]func(s *stream, n *asterisque.Node, cancel func()){
		"aborted":               func(s *stream, _ *asterisque.Node, _ func()) { s.Abort(asterisque.ErrCanceled) },
		"its life ends":         func(_ *stream, _ *asterisque.Node, cancel func()) { cancel() },
		"the server is killed":  func(_ *stream, n *asterisque.Node, _ func()) { n.Close() },
		"the server has an end": func(s *stream, _ *asterisque.Node, _ func()) { s.CloseSend() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := asterisque.NewService()
				ticks.Handle(svc, func(ctx context.Context, _ int, s *asterisque.Pipe[int, struct{}]) (struct{}, error) {
					_, err := s.Recv(ctx)
					return struct{}{}, err
				})
				url, node := inMemory(t, "attack-stream", svc)
				defer node.Close()
				p := newPool(t, []string{url}, pool.Config{})
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				s, err := ticks.Open(ctx, p, 0)
				require.NoError(t, err)
				require.Equal(t, 1, only(t, p).Outstanding)
				end(s, node, cancel)
				synctest.Wait()
				require.Zero(t, only(t, p).Outstanding, "although no caller asks for its outcome")
				p.Close()
			})
		})
	}
}

// TestStreams_OpenFails opens streams without a server, and with a context that has ended.
func TestStreams_OpenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, node := inMemory(t, "attack-no-stream", asterisque.NewService())
		defer node.Close()
		p := newPool(t, []string{url}, pool.Config{})
		synctest.Wait()
		over, cancel := context.WithCancel(background)
		cancel()
		_, err := ticks.Open(over, p, 0)
		require.ErrorIs(t, err, asterisque.ErrCanceled)
		require.Zero(t, only(t, p).Outstanding)
		s, err := ticks.Open(background, p, 0)
		if err == nil {
			_, err = s.Recv(background)
		}
		require.ErrorIs(t, err, asterisque.ErrNoFunction)
		synctest.Wait()
		require.Zero(t, only(t, p).Outstanding)
		p.Close()
	})
}

// TestRests_RefusedStreams has two servers, one of which rejects all streams.
func TestRests_RefusedStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := asterisque.NewService(), asterisque.NewService()
		refused := 0
		ticks.Handle(good, func(context.Context, int, *asterisque.Pipe[int, struct{}]) (struct{}, error) {
			return struct{}{}, nil
		})
		ticks.Handle(bad, func(context.Context, int, *asterisque.Pipe[int, struct{}]) (struct{}, error) {
			refused++
			return struct{}{}, &asterisque.Abort{Code: asterisque.ErrOverloaded.Code, Ran: codec.Refused}
		})
		one, a := inMemory(t, "attack-streams-good", good)
		two, b := inMemory(t, "attack-streams-bad", bad)
		defer a.Close()
		defer b.Close()
		p := newPool(t, []string{one, two}, pool.Config{})
		synctest.Wait()
		for range 200 {
			if s, err := ticks.Open(background, p, 0); err == nil {
				s.Recv(background)
			}
			synctest.Wait()
		}
		require.LessOrEqual(t, refused, 10)
		p.Close()
	})
}

// TestRests_ApplicationErrors has a server that recovers, and then answers with errors of the
// application.
func TestRests_ApplicationErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, refuse, served := asterisque.NewService(), true, 0
		whoami.Handle(svc, func(context.Context, int) (string, error) {
			served++
			if refuse {
				return "", &asterisque.Abort{Code: asterisque.ErrOverloaded.Code, Ran: codec.Refused}
			}
			return "", errors.New("no such order")
		})
		url, node := inMemory(t, "attack-answers", svc)
		defer node.Close()
		good := newLagging(t, "attack-answers-good", 0)
		defer good.node.Close()
		p := newPool(t, []string{url, good.url}, pool.Config{})
		synctest.Wait()
		for range 100 {
			whoami.Call(background, p, 0)
		}
		require.LessOrEqual(t, served, 6)
		refuse, served = false, 0
		fakeclock.Sleep(2 * time.Second)
		for range 100 {
			whoami.Call(background, p, 0)
			fakeclock.Sleep(time.Millisecond)
		}
		require.Greater(t, served, 20, "its share again")
		p.Close()
	})
}
