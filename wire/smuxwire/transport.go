package smuxwire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"os"
	"sync"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// alpn is the application protocol that both sides of a TLS connection agree on. It is not that of
// a single Wire, which is not smux.
const alpn = "asterisque.smux/1"

// smuxTransport is for "smux://host:port" or, if it is secure, "smux+tls://host:port".
type smuxTransport struct {
	secure bool // fixed

	mu     sync.Mutex
	shared map[muxKey]*sharedConn // guarded by mu; connections that wires can still be opened on
}

// muxKey determines which wires may share a connection.
type muxKey struct {
	address string
	tls     *tls.Config // by identity: two configurations are not compared
}

// sharedConn is a connection that is being made, or is up.
type sharedConn struct {
	made chan struct{} // closed when the connection is made, or cannot be
	mux  *Mux          // this and err are set before made is closed
	err  error
}

// Dial implements wire.Dialer.
func (t *smuxTransport) Dial(ctx context.Context, u *url.URL, o wire.Options) (wire.Wire, error) {
	address, err := transport.HostPort(u, true)
	if err != nil {
		return nil, err
	}
	k := muxKey{address, o.TLS}
	for {
		d, mine := t.find(k)
		if mine {
			return t.make(ctx, k, d)
		}
		select {
		case <-d.made:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if d.err != nil && !errors.Is(d.err, context.Canceled) && !errors.Is(d.err, context.DeadlineExceeded) {
			return nil, d.err
		}
		if d.err == nil {
			w, err := d.mux.Open(ctx)
			if err == nil || ctx.Err() != nil {
				return w, err
			}
			t.forget(k, d)
		} // its maker failed, or it has ended or is full: try a new one
	}
}

// make makes the connection of d, and opens the first Wire before d is shared: the connection could
// end with another caller's Wire otherwise. If that fails, d is removed.
func (t *smuxTransport) make(ctx context.Context, k muxKey, d *sharedConn) (w wire.Wire, err error) {
	defer func() {
		if d.err != nil {
			t.forget(k, d)
		}
		close(d.made)
	}()
	d.err = context.Canceled // stays if a callback of TLS panics: waiting callers retry
	d.mux, err = t.connect(ctx, k)
	if err == nil {
		w, err = d.mux.Open(ctx)
		d.mux.leave() // it ends with its last Wire, or at once if there is none
	}
	d.err = err
	return w, err
}

// find returns the connection for k. If there is none, the caller has to make it.
func (t *smuxTransport) find(k muxKey) (d *sharedConn, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.shared[k]; d != nil {
		return d, false
	}
	d = &sharedConn{made: make(chan struct{})}
	t.shared[k] = d
	return d, true
}

func (t *smuxTransport) forget(k muxKey, d *sharedConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shared[k] == d {
		delete(t.shared, k)
	}
}

// connect makes a connection.
func (t *smuxTransport) connect(ctx context.Context, k muxKey) (*Mux, error) {
	var c net.Conn
	var err error
	if t.secure {
		c, err = (&tls.Dialer{Config: transport.TLSConfig(k.tls, alpn)}).DialContext(ctx, "tcp", k.address)
	} else {
		c, err = new(net.Dialer).DialContext(ctx, "tcp", k.address)
	}
	if err != nil {
		return nil, err
	}
	transport.BoundUnsent(c)
	return Client(c, func(c *config) { c.waiting = 0 }) // there is no Accept
}

// Listen implements wire.Transport.
func (t *smuxTransport) Listen(ctx context.Context, u *url.URL, o wire.Options) (wire.Listener, error) {
	address, err := transport.HostPort(u, false)
	if err != nil {
		return nil, err
	}
	var cfg *tls.Config
	if t.secure {
		if cfg, err = transport.ServerTLS(o.TLS, alpn); err != nil {
			return nil, err
		}
	}
	ln, err := transport.ListenTCP(ctx, address, o.ReusePort)
	if err != nil {
		return nil, err
	}
	found := transport.AddrURL(u.Scheme, ln.Addr())
	private := t.secure || ln.Addr().(*net.TCPAddr).IP.IsLoopback()
	socket := ln.(*net.TCPListener)
	if t.secure {
		ln = tls.NewListener(ln, cfg) // the handshakes are done when the connections are first read
	}
	return &knownListener{Listen(ln, found).(*listener), socket, private}, nil
}

// knownListener is a listener with a known socket below it.
type knownListener struct {
	*listener
	socket  *net.TCPListener // these are fixed
	private bool
}

// File returns a duplicate of the socket: see wire.ListenerFile.
func (l *knownListener) File() (*os.File, error) { return l.socket.File() }

// Private implements wire.Private.
func (l *knownListener) Private() bool { return l.private }
