package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// alpn is the application protocol that both sides of a TLS connection agree on, so that nobody
// talks to something else by mistake.
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
	if err != nil {
		return nil, err
	}
	return FromConn(c), nil
}

func (tlsTransport) Listen(ctx context.Context, u *url.URL, o Options) (Listener, error) {
	cfg := transport.TLSConfig(o.TLS, alpn)
	if len(cfg.Certificates) == 0 && cfg.GetCertificate == nil && cfg.GetConfigForClient == nil {
		return nil, errors.New("there is no certificate; put one into Options.TLS.Certificates, for example with tls.LoadX509KeyPair")
	}
	cfg.SessionTicketsDisabled = true // see Options
	l, err := listenTCP(ctx, u)
	if err != nil {
		return nil, err
	}
	// The handshakes are done by the wires, when they are first used.
	return &connListener{Listener: tls.NewListener(l, cfg), url: "tls://" + l.Addr().String(), private: true}, nil
}
