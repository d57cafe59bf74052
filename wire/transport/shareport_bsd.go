//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package transport

import (
	"os"
	"syscall"
)

// sharePort lets other sockets be bound to the port of a socket that is about to be bound.
func sharePort(raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEPORT, 1))
	})
	if failed != nil {
		return failed
	}
	return err
}
