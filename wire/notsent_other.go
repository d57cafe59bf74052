//go:build unix && !linux

package wire

import "syscall"

// boundNotSent does nothing where the system has no bound for what waits in the kernel, or package syscall does not reach it.
func boundNotSent(syscall.RawConn) {}
