//go:build !js

package wswire

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// limitedListener is the net.Listener below a listener. It closes connections at once that its door
// rejects.
type limitedListener struct {
	net.Listener                // these are fixed
	door         transport.Door // nil: there is no door
}

// Accept implements net.Listener.
func (e *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := e.Listener.Accept()
		if err != nil {
			return nil, err
		}
		transport.BoundUnsent(c)
		if e.door == nil {
			return c, nil
		}
		p, err := e.door.Enter(c.RemoteAddr(), func() { c.Close() })
		if err == nil {
			return &limitedConn{c, p}, nil
		}
		c.Close()
	}
}

// limitedConn is a connection with a place, which it releases when it is closed.
type limitedConn struct {
	net.Conn
	place transport.Place
}

// Close implements net.Conn.
func (g *limitedConn) Close() error {
	err := g.Conn.Close()
	g.place.Leave()
	return err
}

// placeKey is the key of the place in the context of a connection.
type placeKey struct{}

// withPlace puts the place of a connection into its context.
func withPlace(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if g, ok := c.(*limitedConn); ok {
		return context.WithValue(ctx, placeKey{}, g.place)
	}
	return ctx
}

// loggerOf returns the logger of an acceptor, or nil.
func loggerOf(acceptor any) *slog.Logger {
	if l, ok := acceptor.(interface{ Logger() *slog.Logger }); ok {
		return l.Logger()
	}
	return nil
}

// serverLog logs the connection errors of an HTTP server. The server has the address in each text,
// and a node bounds its log by text.
type serverLog struct{ log *slog.Logger }

// Write implements io.Writer, for one complaint.
func (c serverLog) Write(p []byte) (int, error) {
	c.log.Warn("HTTP connection failed", "error", string(bytes.TrimSpace(p)))
	return len(p), nil
}

// admittedRequest holds a place at the door while a request becomes a Wire.
type admittedRequest struct {
	mu    sync.Mutex
	taken net.Conn // guarded by mu, as lost; nil before the server has given it away
	lost  bool
}

// end is called when the place is lost.
func (v *admittedRequest) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost = true
	if v.taken != nil {
		v.taken.Close()
	}
}

// took records that the server has given the connection away.
func (v *admittedRequest) took(c net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.taken = c
	if v.lost {
		c.Close()
	}
}

// addrOf returns the address that a request came from. Middleware before a Handler may have
// replaced it.
func addrOf(r *http.Request) net.Addr {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return net.TCPAddrFromAddrPort(at)
	}
	if at, err := netip.ParseAddr(r.RemoteAddr); err == nil {
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, 0))
	}
	return otherAddr(r.RemoteAddr)
}

// otherAddr is an address outside of IP networks.
type otherAddr string

// Network implements net.Addr.
func (otherAddr) Network() string { return "http" }

// String implements net.Addr.
func (a otherAddr) String() string { return string(a) }
