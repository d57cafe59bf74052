//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package transport

import (
	"os"
	"syscall"
)

// sharePort permits other sockets to bind the port of a socket before its own bind.
func sharePort(raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEPORT, 1))
	})
	if failed != nil {
		return failed
	}
	return err
}
