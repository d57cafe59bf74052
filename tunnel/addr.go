package tunnel

import (
	"fmt"
	"net"

	"github.com/asterisque-go/asterisque"
)

// network is the network of an Addr, and of errors.
const network = "asterisque"

// Addr is the number of a function, in the place of a network address: of a [Listener], and of a
// [Conn] with an unknown session.
type Addr uint16

// Network returns "asterisque".
func (Addr) Network() string { return network }

// String returns a description, such as "function 80".
func (a Addr) String() string { return fmt.Sprintf("function %d", uint16(a)) }

// addrs returns the addresses of a connection to a function: those of the Wire, if s is known.
func addrs(s *asterisque.Session, function uint16) (local, remote net.Addr) {
	if s == nil {
		return Addr(function), Addr(function)
	}
	p := s.Peer()
	return p.LocalAddr, p.RemoteAddr
}
