package transport

import (
	"net"
	"net/netip"
)

// Addr returns the address of an end outside of IP networks.
func Addr(network, name string) net.Addr { return addr{network, name} }

type addr struct{ network, name string }

// Network implements net.Addr.
func (a addr) Network() string { return a.network }

// String implements net.Addr.
func (a addr) String() string { return a.name }

// Addrs returns the addresses of the ends of c, as [net.Conn] has them. For a missing one, it
// returns "local" or "remote" in the network.
func Addrs(c any, network string) (local, remote net.Addr) {
	if n, ok := c.(interface{ LocalAddr() net.Addr }); ok {
		local = n.LocalAddr()
	}
	if n, ok := c.(interface{ RemoteAddr() net.Addr }); ok {
		remote = n.RemoteAddr()
	}
	if local == nil {
		local = Addr(network, "local")
	}
	if remote == nil {
		remote = Addr(network, "remote")
	}
	return local, remote
}

// IsHere reports whether an address is on this machine: it is a loopback address, or of a local
// network type ("unix", "mem", "pipe", "stdio"). It is false for nil.
func IsHere(a net.Addr) bool {
	if a == nil {
		return false
	}
	switch a.Network() {
	case "unix", "unixpacket", "mem", "pipe", "stdio":
		return true
	}
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}
