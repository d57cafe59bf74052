package transport

import (
	"os"
	"runtime"
	"strings"
	"syscall"
)

// sharePort permits other sockets to bind the port of a socket before its own bind.
func sharePort(raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, reusePort(), 1))
	})
	if failed != nil {
		return failed
	}
	return err
}

// reusePort returns SO_REUSEPORT of socket(7), which package syscall does not name everywhere.
func reusePort() int {
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		return 0x200
	}
	return 0xf
}
