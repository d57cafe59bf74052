package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// alpn is the application protocol that both sides of a TLS connection agree on. It prevents
// accidental connections to other protocols.
const alpn = "asterisque/1"

// tlsTransport is for "tls://host:port".
type tlsTransport struct{}

func (tlsTransport) Dial(ctx context.Context, u *url.URL, o Options) (Wire, error) {
	address, err := transport.HostPort(u, true)
	if err != nil {
		return nil, err
	}
	d := tls.Dialer{Config: transport.TLSConfig(o.TLS, alpn)}
	c, err := d.DialContext(ctx, "tcp", address)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("the peer closed the connection during the TLS handshake: %w", err)
	case err != nil:
		return nil, err
	}
	return FromConn(c), nil
}

func (tlsTransport) Listen(ctx context.Context, u *url.URL, o Options) (Listener, error) {
	cfg, err := transport.ServerTLS(o.TLS, alpn)
	if err != nil {
		return nil, err
	}
	ln, err := listenTCP(ctx, u, o)
	if err != nil {
		return nil, err
	}
	return newTLSListener(ln, cfg), nil
}
