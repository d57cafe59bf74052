package transport

import (
	"crypto/tls"
	"net"
	"syscall"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT of tcp(7), which package syscall does not name.
const tcpNotSentLowat = 25

// maxNotSent is how many bytes a TCP socket takes before they can be sent. What waits in the kernel
// can no longer be overtaken by anything urgent, and a socket's send buffer may hold megabytes;
// what has been sent and is not acknowledged does not count, so that the throughput stays.
const maxNotSent = 32 << 10

// BoundUnsent bounds what waits to be sent in the kernel, where that is possible, so that an urgent
// call need not wait behind it: on Linux, for a TCP socket, which may be below a [*tls.Conn]. It is
// for transports that do not use [FromConn], and best effort.
func BoundUnsent(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, maxNotSent)
	})
}
