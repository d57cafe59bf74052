package quicwire

import (
	"context"
	"net/url"

	"github.com/asterisque-go/asterisque/wire"
)

// fails where a program has registered a transport of its own before, which then stays
func init() { wire.Register(scheme, transport{}) }

// transport is for "quic://host:port".
type transport struct{}

// Dial implements wire.Dialer.
func (transport) Dial(ctx context.Context, u *url.URL, o wire.Options) (wire.Wire, error) {
	address, err := wire.HostPort(u, true)
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, address, o.TLS)
	if err != nil {
		return nil, err
	}
	w, err := c.Open()
	c.endWithLast()
	return w, err
}

// Listen implements wire.Transport.
func (transport) Listen(ctx context.Context, u *url.URL, o wire.Options) (wire.Listener, error) {
	address, err := wire.HostPort(u, false)
	if err != nil {
		return nil, err
	}
	return listen(ctx, address, o.TLS, unused)
}
