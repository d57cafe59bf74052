//go:build !linux

package transport

import "net"

// BoundUnsent does nothing: the system has no bound for the unsent bytes in the kernel, or package
// syscall does not support it.
func BoundUnsent(net.Conn) {}
