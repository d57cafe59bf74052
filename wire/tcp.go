package wire

import (
	"context"
	"fmt"
	"net"
	"net/url"
)

// tcpTransport is for "tcp://host:port". Go's defaults are what is wanted: no delay, keep-alive, happy eyeballs.
type tcpTransport struct{}

func (tcpTransport) Dial(ctx context.Context, u *url.URL, _ Options) (Wire, error) {
	address, err := hostPort(u, true)
	if err != nil {
		return nil, err
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return FromConn(c), nil
}

func (tcpTransport) Listen(ctx context.Context, u *url.URL, _ Options) (Listener, error) {
	l, err := listenTCP(ctx, u)
	if err != nil {
		return nil, err
	}
	return &connListener{Listener: l, url: "tcp://" + l.Addr().String()}, nil
}

func listenTCP(ctx context.Context, u *url.URL) (net.Listener, error) {
	address, err := hostPort(u, false)
	if err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// hostPort returns what the net package calls an address.
func hostPort(u *url.URL, needHost bool) (string, error) {
	if err := bare(u); err != nil {
		return "", urlError{err}
	}
	example := fmt.Sprintf("for example %s://127.0.0.1:5330", u.Scheme)
	switch {
	case u.Opaque != "":
		return "", urlError{fmt.Errorf("two slashes are missing behind the scheme; %s", example)}
	case needHost && u.Hostname() == "":
		return "", urlError{fmt.Errorf("the host is missing; %s", example)}
	case u.Port() == "":
		return "", urlError{fmt.Errorf("the port is missing; %s", example)}
	case u.Path != "" && u.Path != "/":
		return "", urlError{fmt.Errorf("a path has no meaning here; %s", example)}
	}
	return net.JoinHostPort(u.Hostname(), u.Port()), nil
}
