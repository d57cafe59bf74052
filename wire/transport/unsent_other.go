//go:build !linux

package transport

import "net"

// BoundUnsent does nothing where the system has no bound for what waits in the kernel, or package
// syscall does not reach it.
func BoundUnsent(net.Conn) {}
