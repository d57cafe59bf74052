package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
)

// alpn is the application protocol that both sides of a TLS connection agree on, so that nobody talks to something else by mistake.
const alpn = "asterisque/1"

// tlsTransport is for "tls://host:port".
type tlsTransport struct{}

func (tlsTransport) Dial(ctx context.Context, u *url.URL, o Options) (Wire, error) {
	address, err := hostPort(u, true)
	if err != nil {
		return nil, err
	}
	d := tls.Dialer{Config: tlsConfig(o.TLS)}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return FromConn(c), nil
}

func (tlsTransport) Listen(ctx context.Context, u *url.URL, o Options) (Listener, error) {
	cfg := tlsConfig(o.TLS)
	if len(cfg.Certificates) == 0 && cfg.GetCertificate == nil && cfg.GetConfigForClient == nil {
		return nil, errors.New("there is no certificate; put one into Options.TLS.Certificates, for example with tls.LoadX509KeyPair")
	}
	cfg.SessionTicketsDisabled = true // see Options
	l, err := listenTCP(ctx, u)
	if err != nil {
		return nil, err
	}
	// The handshakes are done by the wires, when they are first used.
	return &connListener{Listener: tls.NewListener(l, cfg), url: "tls://" + l.Addr().String()}, nil
}

// tlsConfig returns a copy of c with what is missing filled in.
func tlsConfig(c *tls.Config) *tls.Config {
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS13}
	}
	c = c.Clone()
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS13
	}
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{alpn}
	}
	return c
}
