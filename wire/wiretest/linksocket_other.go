//go:build !unix

package wiretest

import "syscall"

// smallWindow leaves the receive buffer of a socket unchanged.
func smallWindow(int) func(network, address string, c syscall.RawConn) error { return nil }
