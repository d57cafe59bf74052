package wiretest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

const (
	largestPacket = 64 << 10 // bytes
	udpBuffer     = 4 << 20  // buffer of the sockets of the proxy, so that they lose nothing
)

// ProxyUDP listens at a free UDP port of 127.0.0.1, and forwards the packets of every client
// through l to the UDP address target, such as "127.0.0.1:5330", each client from a separate port.
// Packets that find the queue of l full are lost. Packets keep their order. The error is that of
// listening, or of an invalid address.
func (l *Link) ProxyUDP(target string) (*LinkProxy, error) {
	to, err := net.ResolveUDPAddr("udp", target)
	if err != nil {
		return nil, fmt.Errorf("wiretest: proxy for %s: %w", target, err)
	}
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("wiretest: proxy for %s: %w", target, err)
	}
	enlarge(c)
	p := l.newProxy(c.LocalAddr())
	p.add(c)
	p.running.Go(func() { p.packets(c, to) }) // ends with Close
	return p, nil
}

func enlarge(c *net.UDPConn) {
	c.SetReadBuffer(udpBuffer)
	c.SetWriteBuffer(udpBuffer)
}

// packets reads the packets of clients.
func (p *LinkProxy) packets(c *net.UDPConn, target *net.UDPAddr) {
	clients := make(map[netip.AddrPort]*udpClient)
	b := make([]byte, largestPacket)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // such as that a client is no longer there
		}
		u := clients[from]
		if u == nil {
			if u = p.newClient(c, from, target); u == nil {
				continue
			}
			clients[from] = u
		}
		u.up.offer(b[:n])
	}
}

// udpClient is one client of a UDP proxy.
type udpClient struct {
	near     *net.UDPConn // these are fixed; of the proxy
	addr     netip.AddrPort
	far      *net.UDPConn // of this client alone
	up, down *flow        // these lock themselves
}

// newClient returns nil if the proxy has been closed, or no port is free.
func (p *LinkProxy) newClient(near *net.UDPConn, addr netip.AddrPort, target *net.UDPAddr) *udpClient {
	far, err := net.DialUDP("udp", nil, target)
	if err != nil {
		return nil
	}
	enlarge(far)
	u := &udpClient{near: near, addr: addr, far: far}
	u.up, u.down = p.link.out.newFlow(0, true), p.link.in.newFlow(0, true)
	if !p.add(u) {
		return nil
	}
	p.running.Go(func() { // these three end with Close
		deliver(u.up, func(b []byte) error { _, err := u.far.Write(b); return err })
	})
	p.running.Go(func() {
		deliver(u.down, func(b []byte) error { _, err := u.near.WriteToUDPAddrPort(b, u.addr); return err })
	})
	p.running.Go(u.answers)
	return u
}

// deliver forwards packets that have crossed f.
func deliver(f *flow, write func(b []byte) error) {
	b := make([]byte, largestPacket)
	for {
		n, err := f.take(b)
		if err != nil {
			return
		}
		if err := write(b[:n]); errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// answers reads the packets of the server for the client.
func (u *udpClient) answers() {
	b := make([]byte, largestPacket)
	for {
		n, err := u.far.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil { // a write fails, for example, while no server listens there yet
			u.down.offer(b[:n])
		}
	}
}

// Close removes the client.
func (u *udpClient) Close() error {
	u.up.deafen(errClosed)
	u.down.deafen(errClosed)
	return u.far.Close()
}
