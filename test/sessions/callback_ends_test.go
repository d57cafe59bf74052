package sessions

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// TestHandler_Goexit sets every limit to one, so that a resource kept by such a call would block
// the next.
func TestHandler_Goexit(t *testing.T) {
	exits := asterisque.Func[string, string](20, "exits")
	for name, opts := range map[string][]asterisque.HandlerOption{
		"a worker": nil,
		"a gate":   {asterisque.WithConcurrency(1)},
		"a key":    {asterisque.WithKey(func(string) string { return "one" })},
	} {
		t.Run(name, func(t *testing.T) {
			svc := testkit.EchoService()
			exits.Handle(svc, func(context.Context, string) (string, error) { runtime.Goexit(); return "", nil }, opts...)
			dialled, accepted := testkit.Connect(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1, Node: 1}))
			for range 3 {
				_, err := exits.Call(testkit.Background, dialled, "x")
				require.ErrorIs(t, err, asterisque.ErrPanicked)
				require.False(t, asterisque.Repeatable(err), "it ran")
				got, err := testkit.Echo.Call(testkit.Background, dialled, "goes on")
				require.NoError(t, err)
				require.Equal(t, "goes on", got)
			}
			testkit.Settled(t, func() bool { st := accepted.Stats(); return st.Running == 0 && st.Waiting == 0 && st.Pipes == 0 })
		})
	}
}

// TestHandler_NestedGoexit calls back more often than there is room for, with nested handlers that
// end their goroutine.
func TestHandler_NestedGoexit(t *testing.T) {
	exits, calls := asterisque.Func[string, string](20, "exits"), asterisque.Func[string, string](21, "calls")
	svc := asterisque.NewService()
	exits.Handle(svc, func(context.Context, string) (string, error) { runtime.Goexit(); return "", nil })
	calls.Handle(svc, func(ctx context.Context, s string) (string, error) {
		return exits.Call(ctx, asterisque.SessionOf(ctx), s)
	})
	here := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
	there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, accepted := testkit.ConnectNodes(t, here, there)
	for range 300 {
		_, err := calls.Call(testkit.Background, dialled, "x")
		require.ErrorIs(t, err, asterisque.ErrPanicked)
	}
	testkit.Settled(t, func() bool {
		return here.Stats().Lent == 0 && dialled.Stats().Classes.Nested.Held == 0 && accepted.Stats().Running == 0
	})
}

// TestHandler_EndsItsSession uses handlers that end their session, connection and node: these do
// not wait for the handler.
func TestHandler_EndsItsSession(t *testing.T) {
	ends := asterisque.Func[string, string](20, "ends")
	for way, end := range map[string]func(ctx context.Context, n *asterisque.Node, c *asterisque.Connection, s *asterisque.Session) error{
		"Session.Close": func(_ context.Context, _ *asterisque.Node, _ *asterisque.Connection, s *asterisque.Session) error {
			return s.Close()
		},
		"Connection.Close": func(_ context.Context, _ *asterisque.Node, c *asterisque.Connection, _ *asterisque.Session) error {
			return c.Close()
		},
		"Node.Close": func(_ context.Context, n *asterisque.Node, _ *asterisque.Connection, _ *asterisque.Session) error {
			return n.Close()
		},
		"Session.Shutdown": func(ctx context.Context, _ *asterisque.Node, _ *asterisque.Connection, s *asterisque.Session) error {
			return s.Shutdown(ctx)
		},
		"Connection.Shutdown": func(ctx context.Context, _ *asterisque.Node, c *asterisque.Connection, _ *asterisque.Session) error {
			return c.Shutdown(ctx)
		},
		"Node.Shutdown": func(ctx context.Context, n *asterisque.Node, _ *asterisque.Connection, _ *asterisque.Session) error {
			return n.Shutdown(ctx)
		},
	} {
		for where, opts := range map[string][]asterisque.HandlerOption{"on a worker": nil, "inline": {asterisque.WithInline()}} {
			t.Run(way+" "+where, func(t *testing.T) {
				here, svc := asterisque.NewNode(), asterisque.NewService()
				var conn atomic.Pointer[asterisque.Connection]
				returned := make(chan error, 1)
				node := asterisque.NewNode(asterisque.WithService(svc))
				t.Cleanup(func() { here.Close(); node.Close() })
				ends.Handle(svc, func(ctx context.Context, s string) (string, error) {
					returned <- end(ctx, node, conn.Load(), asterisque.SessionOf(ctx))
					return s, nil
				}, opts...)
				accepted := make(chan *asterisque.Session, 1)
				c, err := node.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: func(context.Context) (wire.Wire, error) {
					a, b := wire.Pipe()
					go func() {
						if s, err := here.Accept(testkit.Background, b); err == nil {
							accepted <- s
						}
					}()
					return a, nil
				}})
				require.NoError(t, err)
				conn.Store(c)
				mine, peer := c.Session(), <-accepted
				got, err := ends.Call(testkit.Background, peer, "x")
				require.NoError(t, <-returned)
				if len(way) > len("Shutdown") && way[len(way)-len("Shutdown"):] == "Shutdown" {
					require.NoError(t, err, "it is one of the calls that may finish")
					require.Equal(t, "x", got)
				}
				<-peer.Done()
				<-mine.Done()
			})
		}
	}
}

// TestAccept_AsManyAsHandshakes blocks that number of them, and then lets them return.
func TestAccept_AsManyAsHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn, running := make(chan struct{}), make(chan struct{}, 10)
		node := asterisque.NewNode(asterisque.WithAdmission(asterisque.Admission{HalfOpen: 2}), asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 300 * time.Millisecond}),
			asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
				running <- struct{}{}
				<-goOn // regardless of its context
				return nil, nil
			}}))
		peer := asterisque.NewNode()
		t.Cleanup(func() { node.Close(); peer.Close() })
		meet := func() (theirs, ours chan error) {
			a, b := wire.Pipe()
			theirs, ours = make(chan error, 1), make(chan error, 1)
			go func() { _, err := node.Accept(testkit.Background, b); ours <- err }()
			go func() { _, err := peer.Attach(testkit.Background, a); theirs <- err }()
			return theirs, ours
		}
		for range 2 {
			theirs, ours := meet()
			require.ErrorIs(t, <-ours, asterisque.ErrExpired)
			require.ErrorIs(t, <-theirs, asterisque.ErrExpired)
			<-running
		}
		theirs, ours := meet()
		err := <-ours
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.ErrorContains(t, err, "Admission.HalfOpen")
		require.ErrorIs(t, <-theirs, asterisque.ErrOverloaded, "the peer receives the reason")
		require.Empty(t, running, "it was not called")
		close(goOn)
		theirs, ours = meet()
		require.NoError(t, <-ours)
		require.NoError(t, <-theirs)
	})
}

// TestNode_CloseEndsHandshakes closes a node during the handshake of a silent peer.
func TestNode_CloseEndsHandshakes(t *testing.T) {
	node := asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Hour}))
	_, b := wire.Pipe()
	ended := make(chan error, 1)
	go func() { _, err := node.Accept(testkit.Background, b); ended <- err }()
	node.Close()
	require.ErrorIs(t, <-ended, asterisque.ErrUnavailable)
}
