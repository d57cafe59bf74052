package quicwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Conn is a connection that this side has dialled. It can carry several sessions. It is safe for
// concurrent use.
type Conn struct {
	quic *quic.Conn // this is fixed

	mu sync.Mutex
	// guarded by mu: no new sessions; the connection ends with its last stream
	closed bool
	open   map[*streamConn]struct{} // guarded by mu: the streams that are not over
}

// Dial connects to a listener at "host:port". c configures TLS, as [wire.Options].TLS: it is
// copied, and nil stands for verification by the roots of the system. start ends the wait of Dial,
// and has no effect on the connection that is returned; without an answer Dial fails after 5
// seconds.
//
// A connection without a session is closed by the listener after 30 seconds, or, if a node serves
// it, after the time that a handshake may take: see Timeouts.Handshake there.
func Dial(start context.Context, address string, c *tls.Config) (*Conn, error) {
	conn, err := dial(start, address, c)
	if err != nil {
		// it may be a URL by mistake
		return nil, fmt.Errorf("quicwire: dial %s: %w", transport.ShowURL(address), transport.HideURL(err, address))
	}
	return conn, nil
}

func dial(ctx context.Context, address string, c *tls.Config) (*Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	peers, err := resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	var first error
	for _, peer := range peers {
		conn, err := dialOne(ctx, peer, clientTLS(c, host))
		if err == nil {
			return &Conn{quic: conn, open: make(map[*streamConn]struct{})}, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || !isTimeout(err) {
			break // another address of the same host would have the same error
		}
	}
	return nil, first
}

// resolve returns the addresses of a host, with the most likely to answer first: an address that
// does not answer costs the whole handshake timeout.
func resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var v4, v6 []netip.AddrPort
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() {
			v4 = append(v4, netip.AddrPortFrom(ip, uint16(port)))
		} else {
			v6 = append(v6, netip.AddrPortFrom(ip, uint16(port)))
		}
	}
	return slices.Concat(v4, v6), nil
}

// dialOne connects from a new socket, which is closed with the connection. Because no other
// connection uses the socket, the listener's packets need no QUIC connection id; with ids, a client
// could use up those that it has issued, and be lost, if its address changes three times in a
// second.
func dialOne(ctx context.Context, peer netip.AddrPort, c *tls.Config) (*quic.Conn, error) {
	socket, err := new(net.ListenConfig).ListenPacket(ctx, "udp", ":0")
	if err != nil {
		return nil, err
	}
	conn, err := quic.Dial(ctx, socket, net.UDPAddrFromAddrPort(peer), c, config(-1))
	switch {
	case err == nil:
		context.AfterFunc(conn.Context(), func() { socket.Close() })
		return conn, nil
	case isTimeout(err):
		err = fmt.Errorf("no answer within %v: there is no listener, or the path blocks UDP: %w", handshakeTime, err)
	case ctx.Err() != nil: // err is the error of ctx
		socket.Close()
		return nil, err
	}
	socket.Close()
	return nil, fault(err)
}

// Open returns the Wire of a new session, which the listener accepts as soon as something has been
// written to it, or to one that was opened later. It does not block. The error says that the
// connection is closed, wrapping [net.ErrClosed], or why it failed, or that it has as many sessions
// as the listener allows.
func (c *Conn) Open() (wire.Wire, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("quicwire: open: the connection is closed: %w", net.ErrClosed)
	}
	str, err := c.quic.OpenStream()
	if errors.As(err, new(*quic.StreamLimitReachedError)) {
		return nil, fmt.Errorf("quicwire: open: the connection to %v has as many sessions as that side allows (a listener of this package allows %d)", c.quic.RemoteAddr(), sessions)
	} else if err != nil {
		return nil, fmt.Errorf("quicwire: open: %w", fault(err))
	}
	s := &streamConn{conn: c.quic, quic: str}
	s.over = func() { c.forget(s) }
	c.open[s] = struct{}{}
	return newWire(s), nil
}

// forget is called for a stream that is over.
func (c *Conn) forget(s *streamConn) {
	c.mu.Lock()
	delete(c.open, s)
	last := c.closed && len(c.open) == 0
	c.mu.Unlock()
	if last {
		c.quic.CloseWithError(0, "")
	}
}

// endWithLast closes the connection when it has no session, possibly at once.
func (c *Conn) endWithLast() {
	c.mu.Lock()
	c.closed = true
	last := len(c.open) == 0
	c.mu.Unlock()
	if last {
		c.quic.CloseWithError(0, "")
	}
}

// Close closes the Wires that are open, as their own Close does, and then the connection. Repeated
// calls return nil.
func (c *Conn) Close() error {
	c.endWithLast()
	c.mu.Lock()
	var open []*streamConn
	for s := range c.open {
		open = append(open, s)
	}
	c.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range open {
		closing.Go(func() { s.Close() })
	}
	closing.Wait()
	return nil
}

// ConnectionState returns the TLS state of the connection: its encryption and the certificates of
// the peer.
func (c *Conn) ConnectionState() tls.ConnectionState { return c.quic.ConnectionState().TLS }
