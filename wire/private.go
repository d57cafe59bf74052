package wire

import "github.com/asterisque-go/asterisque/wire/transport"

// IsPrivate reports whether nobody else can read what crosses w. A Wire that is [Private] says so
// itself, and one that is [Secure] is private. Any other is if its peer is on this machine, by its
// address: a loopback one, or none of a network that others have part in ("unix", "mem", "pipe",
// "stdio"). Behind a proxy on this machine all peers look so. What lies before the proxy is up to
// the proxy, and to the peers, who ask for themselves.
func IsPrivate(w Wire) bool {
	if p, ok := w.(Private); ok {
		return p.Private()
	}
	if _, ok := w.(Secure); ok {
		return true
	}
	return transport.IsHere(w.RemoteAddr())
}
