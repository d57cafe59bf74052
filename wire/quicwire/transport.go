package quicwire

import (
	"context"
	"net/url"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// fails if the application has registered its own transport before, which then stays
func init() { wire.Register(scheme, quicTransport{}) }

// quicTransport is for "quic://host:port".
type quicTransport struct{}

// Dial implements wire.Dialer.
func (quicTransport) Dial(ctx context.Context, u *url.URL, o wire.Options) (wire.Wire, error) {
	address, err := transport.HostPort(u, true)
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
func (quicTransport) Listen(ctx context.Context, u *url.URL, o wire.Options) (wire.Listener, error) {
	address, err := transport.HostPort(u, false)
	if err != nil {
		return nil, err
	}
	if o.ReusePort {
		// packets of connections to one process would go to the other
		return nil, transport.NoReusePort("a QUIC socket")
	}
	return listen(ctx, address, o.TLS, unused)
}
