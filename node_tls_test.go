package asterisque_test

import (
	"context"
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

func TestBothSidesSeeTheStateOfTLS(t *testing.T) {
	server, client := testtls.Configs(t)
	seen := make(chan asterisque.Peer, 1)
	there := asterisque.NewNode(asterisque.WithService(echoService()), asterisque.WithTLS(server),
		asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
			seen <- p
			return nil, nil
		}}))
	here := asterisque.NewNode(asterisque.WithTLS(client))
	t.Cleanup(func() { here.Close(); there.Close() })
	ln, err := wire.Listen(background, "tls://127.0.0.1:0", wire.Options{TLS: server})
	require.NoError(t, err)
	go there.Serve(background, ln)
	s, err := here.Dial(background, ln.URL())
	require.NoError(t, err)
	got, err := echo.Call(background, s, "sealed")
	require.NoError(t, err)
	require.Equal(t, "sealed", got)
	for _, state := range []*tls.ConnectionState{(<-seen).TLS, s.Peer().TLS} {
		require.NotNil(t, state)
		require.EqualValues(t, tls.VersionTLS13, state.Version)
		require.Equal(t, "asterisque/1", state.NegotiatedProtocol)
	}
}

func TestAPeerThatIsNotTrustedIsRefusedAndDoesNoHarm(t *testing.T) {
	server, client := testtls.Configs(t)
	there := asterisque.NewNode(asterisque.WithService(echoService()))
	stranger, friend := asterisque.NewNode(), asterisque.NewNode(asterisque.WithTLS(client))
	t.Cleanup(func() { stranger.Close(); friend.Close(); there.Close() })
	ln, err := wire.Listen(background, "tls://127.0.0.1:0", wire.Options{TLS: server})
	require.NoError(t, err)
	go there.Serve(background, ln)
	_, err = stranger.Dial(background, ln.URL())
	require.ErrorContains(t, err, "certificate")
	s, err := friend.Dial(background, ln.URL())
	require.NoError(t, err)
	_, err = echo.Call(background, s, "")
	require.NoError(t, err)
}

func TestASessionRunsOverEveryScheme(t *testing.T) {
	for name, url := range map[string]string{"tcp": "tcp://127.0.0.1:0", "unix": "unix://" + t.TempDir() + "/socket", "mem": "mem://" + t.Name()} {
		t.Run(name, func(t *testing.T) {
			there, here := asterisque.NewNode(asterisque.WithService(echoService())), asterisque.NewNode()
			defer here.Close()
			defer there.Close()
			ln, err := wire.Listen(background, url, wire.Options{})
			require.NoError(t, err)
			done := make(chan error)
			ctx, cancel := context.WithCancel(background)
			go func() { done <- there.Serve(ctx, ln) }()
			s, err := here.Dial(background, ln.URL())
			require.NoError(t, err)
			_, err = echo.Call(background, s, "x")
			require.NoError(t, err)
			cancel()
			require.NoError(t, <-done, "Serve ends with its context")
			_, err = echo.Call(background, s, "the session stays")
			require.NoError(t, err)
			require.ErrorContains(t, there.Serve(background, failingListener{}), "broken")
		})
	}
}

// failingListener cannot accept.
type failingListener struct{}

func (failingListener) Accept() (wire.Wire, error) { return nil, errBroken }
func (failingListener) Close() error               { return nil }
func (failingListener) URL() string                { return "broken://" }
