package natswire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// alpn is the application protocol that both ends agree on if they use TLS.
const alpn = "asterisque/1"

// patience is how long a dial waits for a listener, TLS included.
const patience = 5 * time.Second

// Dial opens a Wire to one of the listeners at a name, over a NATS connection of the caller. The
// caller keeps nc, which may have other users and has to stay open as long as the Wire. The options
// of package nats say how to connect: nats.UserInfo, nats.Token, nats.Nkey, nats.UserCredentials,
// nats.Secure and so on.
//
// If c is not nil, both ends do TLS through NATS, as [wire.Options].TLS says, and the listener has
// to do the same. Unless c names a server, the certificate of the listener has to be for the name.
//
// start ends the wait of Dial, and has no effect on the Wire that is returned. Without an answer
// Dial fails after 5 seconds. The error wraps [ErrNobody], at once, if there is no listener;
// [ErrRefused] if the listener refuses; [nats.ErrPermissionViolation] if the server does not allow
// it; a [*PayloadError] if the server's messages are too small; and [wire.ErrURL] if no subject can
// have the name.
func Dial(start context.Context, nc *nats.Conn, name string, c *tls.Config) (wire.Wire, error) {
	w, err := dial(start, newLink(nc, false), name, c)
	if err != nil {
		return nil, fmt.Errorf("natswire: dial %q: %w", name, err)
	}
	return w, nil
}

// dial opens a Wire over a link. The link ends with the Wire, or at once if dial fails.
func dial(ctx context.Context, l *link, name string, cfg *tls.Config) (wire.Wire, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoAnswer)
	defer cancel()
	c := newConn(l, l.nc.ConnectedAddr()+"/"+name)
	w, err := c.dial(ctx, name, cfg)
	if err != nil {
		c.Close()
		return nil, err
	}
	return w, nil
}

var errNoAnswer = fmt.Errorf("the listener has not answered within %v: its NATS server may not let it answer, or it is overloaded: %w", patience, context.DeadlineExceeded)

// dial requests a Wire from a listener, and does TLS with it if there is a configuration.
func (c *conn) dial(ctx context.Context, name string, cfg *tls.Config) (wire.Wire, error) {
	subject, err := subjectOf(name)
	if err != nil {
		return nil, err
	}
	if err := c.ask(ctx, subject, helloMessage{cfg != nil, window}); err != nil {
		return nil, err
	}
	if cfg == nil {
		return newWire(c), nil
	}
	cfg = transport.TLSConfig(cfg, alpn)
	if cfg.ServerName == "" {
		cfg.ServerName = name
	}
	t := tls.Client(c, cfg)
	if err := t.HandshakeContext(ctx); err != nil {
		t.Close()
		return nil, inTime(ctx, err)
	}
	return newSecretWire(c, t), nil
}

// inTime returns err, or the cause of ctx if that has ended.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// ask requests a Wire from a listener and waits for its answer.
func (c *conn) ask(ctx context.Context, subject string, g helloMessage) error {
	nc := c.link.nc
	if err := checkPayload(nc); err != nil {
		return err
	}
	before := nc.LastError()
	if err := c.subscribe(); err != nil {
		return err
	}
	if err := nc.PublishRequest(subject, c.out.inbox, g.appendTo(nil)); err != nil {
		return err
	}
	if err := allowed(ctx, nc, before, subject, c.out.inbox); err != nil {
		if why := c.cause(); why != nil {
			return why // a listener or the end of the connection was faster
		}
		return err
	}
	select {
	case <-c.opened:
		return nil
	case <-c.ended:
		return c.cause()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leastPayload is the minimum payload of a message that the server has to accept.
const leastPayload = 512

// checkPayload returns a PayloadError if the limit of the server is too low.
func checkPayload(nc *nats.Conn) error {
	if most := nc.MaxPayload(); most < leastPayload {
		return &PayloadError{Limit: most, Need: leastPayload}
	}
	return nil
}

// allowed waits until the server has processed the preceding messages, and returns its error if it
// has not allowed one of the subjects. before is the error of the connection before these messages.
func allowed(ctx context.Context, nc *nats.Conn, before error, subjects ...string) error {
	if err := nc.FlushWithContext(ctx); err != nil {
		return inTime(ctx, err)
	}
	err := nc.LastError()
	if err == before || !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	for _, s := range subjects {
		if strings.Contains(err.Error(), `"`+s+`"`) {
			return fmt.Errorf("the permissions of this user of the NATS server do not suffice; it needs to subscribe and publish to %s* and to inboxes: %w", meeting, err)
		}
	}
	return nil
}
