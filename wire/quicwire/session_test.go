package quicwire

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

// A session has the certificate of its peer.
func TestSession_PeerCertificate(t *testing.T) {
	a := testtls.NewAuthority(t)
	cert := a.Issue("both sides", time.Hour)
	server := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()}
	seen := make(chan asterisque.Peer, 1)
	there := asterisque.NewNode(asterisque.WithService(service()), asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		seen <- p
		return nil, nil
	}}))
	here := asterisque.NewNode(asterisque.WithTLS(a.Client(cert)))
	stranger := asterisque.NewNode(asterisque.WithTLS(a.Client()))
	t.Cleanup(func() { here.Close(); stranger.Close(); there.Close() })
	l, err := wire.Listen(background, "quic://127.0.0.1:0", wire.Options{TLS: server})
	require.NoError(t, err)
	go there.Serve(background, l) // ends with the node

	_, err = stranger.Dial(background, l.URL())
	// during Dial or in the handshake of the session: the client completes TLS before the server
	// rejects its certificate
	require.ErrorContains(t, err, "certificate required")

	sess, err := here.Dial(background, l.URL())
	require.NoError(t, err)
	got, err := echo.Call(background, sess, "sealed")
	require.NoError(t, err)
	require.Equal(t, "sealed", got)
	for _, state := range []*tls.ConnectionState{(<-seen).TLS, sess.Peer().TLS} {
		require.Equal(t, cert.Certificate[0], state.PeerCertificates[0].Raw)
		require.Equal(t, "asterisque/1", state.NegotiatedProtocol)
	}
}

// A closed session ends its calls on both sides at once.
func TestSession_CloseEndsCalls(t *testing.T) {
	l, here, _ := serve(t, "quic://127.0.0.1:0")
	sess, err := here.Dial(background, l.URL())
	require.NoError(t, err)
	_, err = echo.Call(background, sess, "up")
	require.NoError(t, err)
	require.NoError(t, sess.Close())
	_, err = echo.Call(background, sess, "down")
	require.ErrorIs(t, err, asterisque.ErrSessionClosed)
}
