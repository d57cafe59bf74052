//go:build !unix

package wire

import "net"

// newSocketWire reports that sockets are read and written like any other net.Conn here.
func newSocketWire(*streamWire, net.Conn) (Wire, bool) { return nil, false }
