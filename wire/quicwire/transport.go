package quicwire

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"github.com/asterisque-go/asterisque/wire"
)

func init() { wire.Register(scheme, transport{}) } // fails where a program has registered a transport of its own before, which then stays

const scheme = "quic"

// transport is for "quic://host:port".
type transport struct{}

// Dial implements wire.Dialer.
func (transport) Dial(ctx context.Context, u *url.URL, o wire.Options) (wire.Wire, error) {
	address, err := hostPort(u, true)
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
	address, err := hostPort(u, false)
	if err != nil {
		return nil, err
	}
	return listen(ctx, address, o.TLS, unused)
}

// hostPort returns what the net package calls an address.
func hostPort(u *url.URL, needHost bool) (string, error) {
	const example = "for example quic://127.0.0.1:5330"
	switch {
	case u.Opaque != "":
		return "", fmt.Errorf("two slashes are missing behind the scheme; %s", example)
	case needHost && u.Hostname() == "":
		return "", fmt.Errorf("the host is missing; %s", example)
	case u.Port() == "":
		return "", fmt.Errorf("the port is missing; %s", example)
	case u.User != nil, u.Path != "" && u.Path != "/", u.RawQuery != "" || u.ForceQuery, u.Fragment != "":
		return "", fmt.Errorf("nothing but host and port has a meaning here; %s", example)
	}
	return net.JoinHostPort(u.Hostname(), u.Port()), nil
}
