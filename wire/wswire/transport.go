package wswire

import (
	"context"
	"net/url"

	"github.com/asterisque-go/asterisque/wire"
)

func init() {
	// An error means that the application has registered its own transport for the scheme, which
	// then stays.
	wire.Register("ws", wsTransport{})
	wire.Register("wss", wsTransport{})
}

// wsTransport is for "ws://host:port/path" and "wss://host:port/path".
type wsTransport struct{}

// Dial implements wire.Dialer.
func (wsTransport) Dial(ctx context.Context, u *url.URL, o wire.Options) (wire.Wire, error) {
	return dial(ctx, u, dialConfig{tls: o.TLS})
}

// Listen implements wire.Transport.
func (wsTransport) Listen(ctx context.Context, u *url.URL, o wire.Options) (wire.Listener, error) {
	return listen(ctx, u, o)
}
