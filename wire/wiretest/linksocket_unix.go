//go:build unix

package wiretest

import "syscall"

// smallWindow returns a function that gives a socket the receive buffer that it is to have before
// it is connected: a window that shrinks later makes TCP stand still for a moment.
func smallWindow(n int) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, n) })
	}
}
