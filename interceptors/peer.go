package interceptors

import (
	"net"
	"net/netip"

	"github.com/asterisque-go/asterisque"
)

// nameOf returns the name that identifies the peer of a session, and whether the peer has proved
// it.
func nameOf(s *asterisque.Session) (name string, proven bool) {
	if s == nil {
		return "", false
	}
	p := s.Peer()
	if p.Subject != "" {
		return "subject " + p.Subject, true
	}
	if c := p.Certificate(); c != nil {
		return "key " + string(c.RawSubjectPublicKeyInfo), true
	}
	return hostOf(p.RemoteAddr), false
}

// hostOf returns the host of an address without its port. For IPv6 it is the /64 prefix, all of
// which one household or machine may have. Addresses without a network share one host.
func hostOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	var at netip.AddrPort
	if n, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		at = n.AddrPort()
	} else if parsed, err := netip.ParseAddrPort(a.String()); err == nil {
		at = parsed
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is6() {
		host, _ := addr.Prefix(64) // 64 is never too many
		return host.String()
	}
	if !addr.IsValid() {
		return ""
	}
	return addr.String()
}
