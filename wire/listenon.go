package wire

import (
	"errors"
	"fmt"
	"net"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// ListenOn makes a Listener of a net.Listener of the application. Each connection becomes a Wire,
// as by [FromConn]. If [Options].TLS is not nil, the wires use TLS, which needs a certificate; a
// Unix socket never uses TLS. The other options configure how to start listening, and are ignored.
//
// The Listener owns ln, and its Close closes ln; after an error, the caller keeps ln.
//
// Close removes the path of a Unix socket if ln does so: see [net.UnixListener.SetUnlinkOnClose].
// URL has the address of ln behind "tcp://", "tls://" or "unix:", or else behind the name of its
// network.
//
// The error gives the reason: ln is nil, closed or not for streams, or there is no certificate.
func ListenOn(ln net.Listener, o Options) (Listener, error) {
	if isNil(ln) {
		return nil, errors.New("wire: listen on nil: look at the error that net.Listen has returned with it")
	}
	if err := checkListener(ln); err != nil {
		return nil, fmt.Errorf("wire: listen on a %T: %w", ln, err)
	}
	l, err := listenOn(ln, o)
	if err != nil {
		return nil, fmt.Errorf("wire: listen on %s: %w", ln.Addr(), err)
	}
	return l, nil
}

// isNil also finds a typed nil, which a caller gets beside an error that it has ignored.
func isNil(ln net.Listener) bool {
	switch ln := ln.(type) {
	case nil:
		return true
	case *net.TCPListener:
		return ln == nil
	case *net.UnixListener:
		return ln == nil
	}
	return false
}

// checkListener returns an error if ln cannot be served.
func checkListener(ln net.Listener) error {
	switch ln := ln.(type) {
	case *net.TCPListener:
		return checkSocket(ln)
	case *net.UnixListener:
		return checkSocket(ln)
	}
	if ln.Addr() == nil {
		return errors.New("its Addr is nil")
	}
	return nil
}

// listenOn is ListenOn for a valid ln.
func listenOn(ln net.Listener, o Options) (Listener, error) {
	address := ln.Addr()
	network := address.Network()
	if network == "unix" {
		return newListener(ln, socketURL(address.String())), nil
	}
	if o.TLS == nil {
		return newListener(ln, transport.AddrURL(network, address)), nil
	}
	cfg, err := transport.ServerTLS(o.TLS, alpn)
	if err != nil {
		return nil, err
	}
	return newTLSListener(ln, cfg), nil
}
