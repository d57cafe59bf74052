package smuxwire_test

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/smuxwire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

func TestHandover_Socket(t *testing.T) {
	server, client := tlsOptions(t)
	for _, scheme := range []string{"smux", "smux+tls"} {
		first := listen(t, scheme+"://127.0.0.1:0", server)
		file, err := wire.ListenerFile(first)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		require.NoError(t, err)
		require.NoError(t, first.Close())

		ln, err := net.FileListener(file) // as of wire.InheritedFile
		require.NoError(t, err)
		require.NoError(t, file.Close())
		if scheme == "smux+tls" {
			cfg, err := transport.ServerTLS(server.TLS, "asterisque.smux/1")
			require.NoError(t, err)
			ln = tls.NewListener(ln, cfg)
		}
		second := smuxwire.Listen(ln, first.URL())
		defer second.Close()
		a, b := connect(t, second, client)
		pingPong(t, a, b)

		_, err = wire.ListenerFile(first)
		require.ErrorIs(t, err, net.ErrClosed)
	}
}

func TestReusePort_Two(t *testing.T) {
	first, err := wire.Listen(t.Context(), "smux://127.0.0.1:0", wire.Options{ReusePort: true})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer first.Close()
	second := listen(t, first.URL(), wire.Options{ReusePort: true})
	require.NoError(t, first.Close())
	a, b := connect(t, second, wire.Options{})
	pingPong(t, a, b)
}
