package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// connListener makes a Listener of a net.Listener.
type connListener struct {
	net.Listener              // these are fixed
	socket       net.Listener // the listener below TLS, or the same
	url          string
	private      bool

	mu     sync.Mutex
	closed bool        // guarded by mu, as file and whether the socket removes its path itself
	file   *socketFile // removed by Close; nil: none
}

// newListener returns a Listener without TLS.
func newListener(ln net.Listener, url string) *connListener {
	return &connListener{Listener: ln, socket: ln, url: url, private: transport.IsHere(ln.Addr())}
}

// newTLSListener returns a Listener with TLS. Its wires do their handshakes at the first use.
func newTLSListener(ln net.Listener, cfg *tls.Config) *connListener {
	return &connListener{Listener: tls.NewListener(ln, cfg), socket: ln, url: transport.AddrURL("tls", ln.Addr()), private: true}
}

// Accept implements Listener.
func (l *connListener) Accept() (Wire, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	if c == nil {
		return nil, errNoConn
	}
	return FromConn(c), nil
}

var errNoConn = errors.New("wire: Accept of the net.Listener has returned neither a connection nor an error")

// Close implements Listener.
func (l *connListener) Close() error {
	l.mu.Lock()
	was, file := l.closed, l.file
	l.closed = true
	l.mu.Unlock()
	if was {
		return nil
	}
	if file != nil {
		file.remove() // while its socket listens, so that no process takes it for a stale one
	}
	return l.Listener.Close()
}

// File returns a duplicate of the socket: see ListenerFile.
func (l *connListener) File() (*os.File, error) {
	s, ok := l.socket.(fileListener)
	if !ok {
		return nil, errNoSocket
	}
	f, err := s.File()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed { // and with it the path of a Unix socket
		f.Close()
		return nil, net.ErrClosed
	}
	l.file = nil
	if u, ok := l.socket.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	return f, nil
}

// Private implements Private.
func (l *connListener) Private() bool { return l.private }

// URL implements Listener.
func (l *connListener) URL() string { return l.url }

// fileListener is implemented by listeners on a socket of the operating system.
type fileListener interface {
	// File returns a duplicate of the socket.
	File() (*os.File, error)
}

var errNoSocket = fmt.Errorf("%w: it has no socket that another process could be given", errors.ErrUnsupported)
