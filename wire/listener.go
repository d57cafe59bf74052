package wire

import (
	"fmt"
	"net"
	"sync/atomic"
)

// connListener makes a Listener of a net.Listener.
type connListener struct {
	net.Listener // these are fixed
	url          string
	private      bool

	closed atomic.Bool
}

// Accept implements Listener.
func (l *connListener) Accept() (Wire, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	return FromConn(c), nil
}

// Close implements Listener.
func (l *connListener) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return l.Listener.Close()
}

// Private implements Private.
func (l *connListener) Private() bool { return l.private }

// URL implements Listener.
func (l *connListener) URL() string { return l.url }
