package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ListenTCP listens at a TCP address, as [HostPort] returns it. reusePort is that of wire.Options:
// several sockets may listen at the same address if all of them set it. The error wraps
// [errors.ErrUnsupported] where the system cannot do that. start governs only the beginning.
func ListenTCP(start context.Context, address string, reusePort bool) (net.Listener, error) {
	var c net.ListenConfig
	if reusePort {
		c.Control = func(_, _ string, raw syscall.RawConn) error { return sharePort(raw) }
	}
	return c.Listen(start, "tcp", address)
}

// NoReusePort returns the error of a transport that does not support ReusePort of wire.Options for
// its kind of listener, such as "a Unix socket". It wraps [errors.ErrUnsupported].
func NoReusePort(listener string) error {
	return fmt.Errorf("%w: Options.ReusePort: %s has no port that several could listen at; listen without it", errors.ErrUnsupported, listener)
}
