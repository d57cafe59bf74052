//go:build unix

package wiretest

import "syscall"

// smallWindow returns a function that sets the receive buffer of a socket before it is connected: a
// window that shrinks later stalls TCP for a moment.
func smallWindow(n int) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, n) })
	}
}
