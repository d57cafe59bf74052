package wire

import (
	"context"
	"net"
	"net/url"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// tcpTransport is for "tcp://host:port". Go's defaults are suitable: no delay, keep-alive, happy
// eyeballs.
type tcpTransport struct{}

func (tcpTransport) Dial(ctx context.Context, u *url.URL, _ Options) (Wire, error) {
	address, err := transport.HostPort(u, true)
	if err != nil {
		return nil, err
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return FromConn(c), nil
}

func (tcpTransport) Listen(ctx context.Context, u *url.URL, o Options) (Listener, error) {
	ln, err := listenTCP(ctx, u, o)
	if err != nil {
		return nil, err
	}
	return newListener(ln, transport.AddrURL("tcp", ln.Addr())), nil
}

func listenTCP(ctx context.Context, u *url.URL, o Options) (net.Listener, error) {
	address, err := transport.HostPort(u, false)
	if err != nil {
		return nil, err
	}
	return transport.ListenTCP(ctx, address, o.ReusePort)
}
