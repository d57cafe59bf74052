package natswire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

const (
	scheme       = "nats"
	secretScheme = "nats+tls"
)

func init() {
	// An error means that the application has registered its own transport for the scheme, which
	// then stays.
	wire.Register(scheme, Transport{})
	wire.Register(secretScheme, Transport{TLS: true})
}

// Transport is a [wire.Transport] over NATS, for a custom scheme where those of this package do not
// suffice: with credentials that a URL cannot hold, or over an existing connection.
//
//	wire.Register("orders", natswire.Transport{Options: []nats.Option{nats.UserCredentials("me.creds")}})
//	node.Dial(ctx, "orders://nats.example.org/eu")
//
// It may not be changed once it is used. The zero value is that of "nats://".
type Transport struct {
	// Conn is a NATS connection for all wires and listeners. The application keeps it, and leaves
	// it open as long as they are open. URLs then have no host: "scheme:///name". If it is nil,
	// each Wire that is dialled has a connection of its own, and each Listener has one with its
	// wires.
	Conn *nats.Conn

	// Options configure the connection where Conn is nil, in addition to the URL: nats.UserInfo,
	// nats.Token, nats.Nkey, nats.UserCredentials, nats.RootCAs, nats.Secure and so on. They can
	// also override the defaults of this package: dialled wires do not reconnect, listeners always
	// do; nothing is logged; and each write is flushed at once.
	Options []nats.Option

	// TLS makes the ends of wires use TLS with each other, through NATS, as [wire.Options].TLS
	// configures. It is independent of TLS between a program and its NATS server.
	TLS bool
}

// Dial implements [wire.Dialer]. Errors are as those of the function [Dial], and of nats.Connect.
func (t Transport) Dial(start context.Context, u *url.URL, o wire.Options) (wire.Wire, error) {
	l, name, err := t.link(start, u, nats.NoReconnect())
	if err != nil {
		return nil, err
	}
	return dial(start, l, name, t.ends(o))
}

// Listen implements [wire.Transport]. Errors are as those of the function [Dial], and of
// nats.Connect. The URL of the Listener has no credentials.
func (t Transport) Listen(start context.Context, u *url.URL, o wire.Options) (wire.Listener, error) {
	if o.ReusePort {
		return nil, transport.NoReusePort("a name in NATS")
	}
	l, name, err := t.link(start, u, nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	shown := *u
	shown.User = nil
	return listen(start, l, name, shown.String(), t.ends(o))
}

// ends returns the TLS configuration for the ends of a Wire; nil: they do not use TLS.
func (t Transport) ends(o wire.Options) *tls.Config {
	if t.TLS && o.TLS == nil {
		return new(tls.Config)
	}
	if !t.TLS {
		return nil
	}
	return o.TLS
}

// link returns the connection for a URL, and the name in it.
func (t Transport) link(ctx context.Context, u *url.URL, opts ...nats.Option) (*link, string, error) {
	name, err := nameIn(u, t.Conn == nil)
	if err != nil {
		return nil, "", err
	}
	if t.Conn != nil {
		return newLink(t.Conn, false), name, nil
	}
	nc, err := connect(ctx, u, append(append(opts, quiet...), t.Options...))
	if err != nil {
		return nil, "", err
	}
	return newLink(nc, true), name, nil
}

// nameIn returns the name in a URL. The error wraps wire.ErrURL.
func nameIn(u *url.URL, host bool) (string, error) {
	name := strings.TrimPrefix(u.Path, "/")
	why := ""
	switch {
	case u.Opaque != "":
		why = "two slashes are missing behind the scheme"
	case host && u.Hostname() == "":
		why = "the host of the NATS server is missing"
	case !host && (u.Host != "" || u.User != nil):
		why = "the transport has a connection to NATS already, and needs no host"
	case u.RawQuery != "" || u.ForceQuery:
		why = "a query has no meaning here"
	case u.Fragment != "":
		why = "a fragment has no meaning here"
	case name == "":
		why = "the name is missing at which to meet"
	}
	if why != "" {
		return "", transport.BadURL(fmt.Errorf("%s; for example %s://127.0.0.1:4222/orders", why, u.Scheme))
	}
	if u.Port() != "" {
		if _, err := transport.HostPort(&url.URL{Scheme: u.Scheme, Host: u.Host}, true); err != nil {
			return "", err
		}
	}
	_, err := subjectOf(name)
	return name, err
}

// quiet are the options for a connection that this package makes.
var quiet = []nats.Option{
	nats.Name("asterisque"),
	nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the wires return them
}

// connect connects to the NATS server of a URL. If ctx ends first, a goroutine waits for the result
// of package nats, and ends with it.
func connect(ctx context.Context, u *url.URL, opts []nats.Option) (*nats.Conn, error) {
	type result struct {
		nc  *nats.Conn
		err error
	}
	made := make(chan result, 1)
	server := url.URL{Scheme: scheme, User: u.User, Host: u.Host}
	go func() {
		nc, err := nats.Connect(server.String(), opts...)
		made <- result{nc, err}
	}()
	select {
	case r := <-made:
		return r.nc, connectError(r.err)
	case <-ctx.Done():
		go func() {
			if r := <-made; r.nc != nil {
				r.nc.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// connectError returns the error for an error of nats.Connect.
func connectError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("the NATS server does not accept the credentials: %w", err)
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("no NATS server answers there: %w", err)
	}
	return fmt.Errorf("connecting to the NATS server: %w", err)
}
