package calls

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// deep is the depth of nested calls in these tests, far larger than the number of workers.
const deep = 50

// serialNode offers nested, with one worker.
func serialNode(opts ...asterisque.Option) *asterisque.Node {
	svc := asterisque.NewService()
	testkit.Nested.Handle(svc, nestedHandler)
	return asterisque.NewNode(append([]asterisque.Option{asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1})}, opts...)...)
}

// TestNested_DeeperThanWorkers requires that calls back that are nested deeper than the number of
// workers succeed, with one worker on each side and, in some cases, one node worker.
func TestNested_DeeperThanWorkers(t *testing.T) {
	type pair func(t testing.TB, here, there *asterisque.Node) (dialled, accepted *asterisque.Session)
	for wireName, connected := range map[string]pair{
		"over TCP": testkit.ConnectNodes,
		"over a Wire without a buffer": func(t testing.TB, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
			a, b := testkit.Unbuffered()
			return asterisquetest.ConnectOver(t, here, there, a, b)
		},
	} {
		for optName, opts := range map[string][]asterisque.Option{
			"":                             nil,
			", with little room":           {asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(256<<10, 1<<20)})},
			", with one worker for a node": {asterisque.WithWorkers(asterisque.Workers{Node: 1})},
			", at tight limits":            {asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(256<<10, 1<<20), Outbound: testkit.Messages(2, 10_000)})},
		} {
			for _, chains := range []int{1, 20} {
				t.Run(fmt.Sprintf("%d %s%s", chains, wireName, optName), func(t *testing.T) {
					here, there := serialNode(opts...), serialNode(opts...)
					t.Cleanup(func() { here.Close(); there.Close() })
					dialled, accepted := connected(t, here, there)
					ctx, cancel := context.WithTimeout(testkit.Background, testkit.Patience)
					defer cancel()
					var wg sync.WaitGroup
					for range chains {
						wg.Go(func() {
							if got, err := testkit.Nested.Call(ctx, dialled, deep); err != nil || got != deep {
								t.Errorf("got %d, %v", got, err)
							}
						})
					}
					wg.Wait()
					testkit.WantIdle(t, dialled, accepted)
				})
			}
		}
	}
}

// TestNested_ChainsBothSides: a call back waits for no worker, so chains from both sides finish
// with one worker each.
func TestNested_ChainsBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := serialNode(), serialNode()
		defer here.Close()
		defer there.Close()
		dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
		var wg sync.WaitGroup
		for _, s := range []*asterisque.Session{dialled, accepted} {
			for range 20 {
				wg.Go(func() {
					if got, err := testkit.Nested.Call(testkit.Background, s, deep); err != nil || got != deep {
						t.Errorf("got %d, %v", got, err)
					}
				})
			}
		}
		wg.Wait()
		testkit.WantIdle(t, dialled, accepted)
	})
}

// TestNested_SideBySide keeps a stream open while another call is made beside it, both of them
// within the same call back.
func TestNested_SideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := testkit.EchoService()
		outer, back := asterisque.Func[string, string](70, "outer"), asterisque.Func[string, string](71, "back")
		outer.Handle(svc, func(ctx context.Context, s string) (string, error) {
			return back.Call(ctx, asterisque.SessionOf(ctx), s)
		})
		svc.Handle(50, "until the end", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			if _, err := p.Recv(ctx); err != io.EOF {
				return nil, err
			}
			return nil, nil
		})
		callers := asterisque.NewService()
		back.Handle(callers, func(ctx context.Context, s string) (string, error) {
			sess := asterisque.SessionOf(ctx)
			var streams []*pipe.Pipe
			for range 5 {
				p, err := sess.Open(ctx, 50, nil)
				if err != nil {
					return "", err
				}
				streams = append(streams, p)
			}
			got, err := testkit.Echo.Call(ctx, sess, s)
			if err != nil {
				return "", err
			}
			for _, p := range streams {
				p.CloseSend()
				if _, err := p.Result(ctx); err != nil {
					return "", err
				}
			}
			return got, nil
		})
		here, there := asterisque.NewNode(asterisque.WithService(callers)), asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 10}))
		defer here.Close()
		defer there.Close()
		dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
		ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
		defer cancel()
		got, err := outer.Call(ctx, dialled, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got)
		testkit.WantIdle(t, dialled, accepted)
	})
}

// TestNested_UpToNumber: each is lent a worker, and beyond the announced number they are refused.
func TestNested_UpToNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 256
		p, s := testkit.RawSession(t, asterisque.WithService(testkit.CallsBackService()), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		p.Send(&message.Open{Pipe: 0, Function: 51})
		within := p.Open().Pipe
		for i := range uint64(most + 10) {
			p.Send(&message.Open{Pipe: 2 + 2*i, Function: 50, Meta: message.Meta{Nested: true, Within: within}})
		}
		for range 10 {
			c := p.Close()
			require.Equal(t, codec.Overloaded, c.Abort.Code)
			require.Equal(t, codec.Refused, c.Abort.Ran)
		}
		synctest.Wait()
		require.Equal(t, 1+most, s.Stats().Running)
		require.Zero(t, s.Stats().Waiting)
		s.Close()
		synctest.Wait()
		require.Empty(t, testkit.Busy(s))
		require.Equal(t, 1+most, s.Stats().MostRunning)
	})
}

// TestNested_NoEnclosingCall refuses a nested call if its enclosing call is over or never existed.
func TestNested_NoEnclosingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := testkit.RawSession(t, asterisque.WithService(testkit.CallsBackService()), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		for i, within := range []uint64{1, 0, 2, 1 << 40} {
			// Pipe 1 is not open yet, 0 and 2 are the peer's own pipes, and 1 << 40 never exists.
			p.Send(&message.Open{Pipe: uint64(2 * i), Function: 50, Meta: message.Meta{Nested: true, Within: within}})
			c := p.Close()
			require.Equal(t, codec.Canceled, c.Abort.Code)
			require.Equal(t, codec.Refused, c.Abort.Ran)
		}
		require.NoError(t, s.Err())
		require.Zero(t, s.Stats().MostRunning)
		require.Zero(t, s.Stats().Classes.Nested.Held)
		s.Close()
		synctest.Wait()
		require.Empty(t, testkit.Busy(s))
	})
}

// TestNested_OutermostEnds cancels the outermost call of a chain while the innermost handler waits.
func TestNested_OutermostEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		innermost := make(chan struct{})
		newNode := func() *asterisque.Node {
			svc := asterisque.NewService()
			testkit.Nested.Handle(svc, func(ctx context.Context, n int) (int, error) {
				if n == 0 {
					close(innermost)
					<-ctx.Done()
					return 0, ctx.Err()
				}
				return testkit.Nested.Call(ctx, asterisque.SessionOf(ctx), n-1)
			})
			return asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		}
		here, there := newNode(), newNode()
		defer here.Close()
		defer there.Close()
		dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
		ctx, cancel := context.WithCancel(testkit.Background)
		go func() { <-innermost; cancel() }()
		_, err := testkit.Nested.Call(ctx, dialled, 7)
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.Empty(t, testkit.Busy(dialled))
		require.Empty(t, testkit.Busy(accepted))
	})
}
