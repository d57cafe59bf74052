package nodes

import (
	"context"
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

// Both sides see the state of TLS.
func TestTLS_State(t *testing.T) {
	server, client := testtls.Configs(t)
	seen := make(chan asterisque.Peer, 1)
	there := asterisque.NewNode(asterisque.WithService(testkit.EchoService()), asterisque.WithTLS(server),
		asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
			seen <- p
			return nil, nil
		}}))
	here := asterisque.NewNode(asterisque.WithTLS(client))
	t.Cleanup(func() { here.Close(); there.Close() })
	ln, err := wire.Listen(testkit.Background, "tls://127.0.0.1:0", wire.Options{TLS: server})
	require.NoError(t, err)
	go there.Serve(testkit.Background, ln)
	s, err := here.Dial(testkit.Background, ln.URL())
	require.NoError(t, err)
	got, err := testkit.Echo.Call(testkit.Background, s, "sealed")
	require.NoError(t, err)
	require.Equal(t, "sealed", got)
	for _, state := range []*tls.ConnectionState{(<-seen).TLS, s.Peer().TLS} {
		require.NotNil(t, state)
		require.EqualValues(t, tls.VersionTLS13, state.Version)
		require.Equal(t, "asterisque/1", state.NegotiatedProtocol)
	}
}

// An untrusted peer is refused, and does no harm.
func TestTLS_UntrustedPeer(t *testing.T) {
	server, client := testtls.Configs(t)
	there := asterisque.NewNode(asterisque.WithService(testkit.EchoService()))
	stranger, friend := asterisque.NewNode(), asterisque.NewNode(asterisque.WithTLS(client))
	t.Cleanup(func() { stranger.Close(); friend.Close(); there.Close() })
	ln, err := wire.Listen(testkit.Background, "tls://127.0.0.1:0", wire.Options{TLS: server})
	require.NoError(t, err)
	go there.Serve(testkit.Background, ln)
	_, err = stranger.Dial(testkit.Background, ln.URL())
	require.ErrorContains(t, err, "certificate")
	s, err := friend.Dial(testkit.Background, ln.URL())
	require.NoError(t, err)
	_, err = testkit.Echo.Call(testkit.Background, s, "")
	require.NoError(t, err)
}

// A session runs over every scheme.
func TestSchemes_Session(t *testing.T) {
	for name, url := range map[string]string{"tcp": "tcp://127.0.0.1:0", "unix": "unix://" + t.TempDir() + "/socket", "mem": "mem://" + t.Name()} {
		t.Run(name, func(t *testing.T) {
			there, here := asterisque.NewNode(asterisque.WithService(testkit.EchoService())), asterisque.NewNode()
			defer here.Close()
			defer there.Close()
			ln, err := wire.Listen(testkit.Background, url, wire.Options{})
			require.NoError(t, err)
			done := make(chan error)
			ctx, cancel := context.WithCancel(testkit.Background)
			go func() { done <- there.Serve(ctx, ln) }()
			s, err := here.Dial(testkit.Background, ln.URL())
			require.NoError(t, err)
			_, err = testkit.Echo.Call(testkit.Background, s, "x")
			require.NoError(t, err)
			cancel()
			require.NoError(t, <-done, "Serve ends with its context")
			_, err = testkit.Echo.Call(testkit.Background, s, "the session stays")
			require.NoError(t, err)
			require.ErrorContains(t, there.Serve(testkit.Background, failingListener{}), "broken")
		})
	}
}

// failingListener is a net.Listener that always fails in Accept.
type failingListener struct{}

func (failingListener) Accept() (wire.Wire, error) { return nil, testkit.ErrBroken }
func (failingListener) Close() error               { return nil }
func (failingListener) URL() string                { return "broken://" }
