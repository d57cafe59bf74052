package transport

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// ErrURL is wire.ErrURL: errors about a URL that can never be used wrap it.
var ErrURL = errors.New("wire: the URL cannot be used")

// BadURL returns err as one that wraps [ErrURL]. A dialler does not retry such a URL.
func BadURL(err error) error { return urlError{err} }

type urlError struct{ error }

func (urlError) Is(target error) bool { return target == ErrURL }
func (e urlError) Unwrap() error      { return e.error }

// ParseURL is [url.Parse] with an error that wraps [ErrURL], and that shows no secrets of the URL.
func ParseURL(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err == nil {
		return u, nil
	}
	shown := ShowURL(rawURL)
	why := errors.New("it cannot be parsed")
	if failed := (*url.Error)(nil); shown == rawURL && errors.As(err, &failed) {
		why = failed.Err // it may quote a part of a password with a '#', for example
	}
	return nil, BadURL(fmt.Errorf("%q is no URL: %w", shown, why))
}

// HostPort returns the address of u in the form of package net. u has to consist of a scheme, a
// host and a port; unless needHost is set, the host may be missing. The error wraps [ErrURL].
func HostPort(u *url.URL, needHost bool) (string, error) {
	if err := checkHostPort(u, needHost); err != nil {
		return "", BadURL(fmt.Errorf("%w; for example %s://127.0.0.1:5330", err, u.Scheme))
	}
	return net.JoinHostPort(u.Hostname(), u.Port()), nil
}

// checkHostPort returns an error if u does not meet the requirements of HostPort.
func checkHostPort(u *url.URL, needHost bool) error {
	if err := Bare(u); err != nil {
		return err
	}
	switch {
	case u.Opaque != "":
		return errors.New("two slashes are missing behind the scheme")
	case needHost && u.Hostname() == "":
		return errors.New("the host is missing")
	case u.Port() == "":
		return errors.New("the port is missing")
	case u.Path != "" && u.Path != "/":
		return errors.New("a path has no meaning here")
	}
	// known to be digits
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || needHost && port == 0 {
		return fmt.Errorf("there is no port %s: ports are 1 to 65535", u.Port())
	}
	return nil
}

// AddrURL returns the URL of an address. The zone of an IPv6 address is escaped in it, as in
// "tcp://[fe80::1%25eth0]:5330" (RFC 6874).
func AddrURL(scheme string, a net.Addr) string {
	at := a.String()
	if _, _, err := net.SplitHostPort(at); err != nil {
		return scheme + "://" + at // of a net.Listener of another kind
	}
	return (&url.URL{Scheme: scheme, Host: at}).String()
}

// Bare returns an error if u has parts that a transport does not support and would ignore: a user,
// a query or a fragment.
func Bare(u *url.URL) error {
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
