package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// What follows is for those who write a Transport.

// ErrURL is what errors of [Dial] and [Listen] wrap that a URL can never be used: it is not one,
// its scheme is unknown, or it lacks what its scheme needs.
var ErrURL = errors.New("wire: the URL cannot be used")

// BadURL returns err as an [ErrURL].
func BadURL(err error) error { return urlError{err} }

type urlError struct{ error }

func (urlError) Is(target error) bool { return target == ErrURL }
func (e urlError) Unwrap() error      { return e.error }

// HostPort returns what package net calls an address, of a URL that consists of a scheme, a host,
// which may be missing unless needHost is set, and a port. The error is a [BadURL].
func HostPort(u *url.URL, needHost bool) (string, error) {
	if err := bare(u); err != nil {
		return "", BadURL(err)
	}
	example := fmt.Sprintf("for example %s://127.0.0.1:5330", u.Scheme)
	switch {
	case u.Opaque != "":
		return "", BadURL(fmt.Errorf("two slashes are missing behind the scheme; %s", example))
	case needHost && u.Hostname() == "":
		return "", BadURL(fmt.Errorf("the host is missing; %s", example))
	case u.Port() == "":
		return "", BadURL(fmt.Errorf("the port is missing; %s", example))
	case u.Path != "" && u.Path != "/":
		return "", BadURL(fmt.Errorf("a path has no meaning here; %s", example))
	}
	return net.JoinHostPort(u.Hostname(), u.Port()), nil
}

// bare returns an error if u has parts that a transport would ignore.
func bare(u *url.URL) error {
	switch {
	case u.User != nil:
		return errors.New("a user has no meaning here")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("a query has no meaning here")
	case u.Fragment != "":
		return errors.New("a fragment has no meaning here")
	}
	return nil
}

// TLSConfig returns a copy of c, which may be nil, with what [Options] promises filled in: TLS 1.3,
// and as application protocol (ALPN) protocol, unless c names others.
func TLSConfig(c *tls.Config, protocol string) *tls.Config {
	if c == nil {
		c = new(tls.Config)
	}
	c = c.Clone()
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS13
	}
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{protocol}
	}
	return c
}
