package wire

import "net"

// addr is the address of an end that has none in a network.
type addr struct{ network, name string }

// Network implements net.Addr.
func (a addr) Network() string { return a.network }

// String implements net.Addr.
func (a addr) String() string { return a.name }

// addrs returns the addresses of the ends of c, which need not know them.
func addrs(c any) (local, remote net.Addr) {
	if n, ok := c.(interface{ LocalAddr() net.Addr }); ok {
		local = n.LocalAddr()
	}
	if n, ok := c.(interface{ RemoteAddr() net.Addr }); ok {
		remote = n.RemoteAddr()
	}
	if local == nil {
		local = addr{"stream", "local"}
	}
	if remote == nil {
		remote = addr{"stream", "remote"}
	}
	return local, remote
}
