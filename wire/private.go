package wire

import (
	"net"
	"net/netip"
)

// Private is implemented by a [Wire], or a [Listener], that says whether nobody else can read what
// crosses it, or its wires: because it is encrypted, or does not leave the machine.
type Private interface {
	// Private reports whether it is. It does nothing else.
	Private() bool
}

// IsPrivate reports whether nobody else can read what crosses w: it says so, as [Private]; it is
// [Secure]; or its peer is on this machine, by its address, which is a loopback one, or none of a
// network that others have part in: "unix", "mem", "pipe", "stdio". Behind a proxy on this machine
// all peers look so: what lies before the proxy is up to it, and to its peers, who ask for
// themselves.
func IsPrivate(w Wire) bool {
	if p, ok := w.(Private); ok {
		return p.Private()
	}
	if _, ok := w.(Secure); ok {
		return true
	}
	return isHere(w.RemoteAddr())
}

// isHere reports whether an address is on this machine.
func isHere(a net.Addr) bool {
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
