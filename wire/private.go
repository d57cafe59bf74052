package wire

import "github.com/asterisque-go/asterisque/wire/transport"

// IsPrivate reports whether the frames of w are hidden from third parties. A Wire that implements
// [Private] decides itself, and one that is [Secure] is private. Any other Wire is private if the
// address of its peer is on this machine: a loopback address, or one of a local network type
// ("unix", "mem", "pipe", "stdio"). Behind a proxy on this machine all peers have such an address.
// Privacy in front of the proxy is the responsibility of the proxy, and of the peers, which can
// check it themselves.
func IsPrivate(w Wire) bool {
	if p, ok := w.(Private); ok {
		return p.Private()
	}
	if _, ok := w.(Secure); ok {
		return true
	}
	return transport.IsHere(w.RemoteAddr())
}
