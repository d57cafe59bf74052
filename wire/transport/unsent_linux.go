package transport

import (
	"crypto/tls"
	"net"
	"syscall"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT of tcp(7), which package syscall does not name.
const tcpNotSentLowat = 25

// maxNotSent is how many unsent bytes a TCP socket accepts. Urgent messages cannot overtake bytes
// that are queued in the kernel, and a socket's send buffer may hold megabytes. Bytes that were
// sent and are not acknowledged do not count, so that the throughput stays.
const maxNotSent = 32 << 10

// BoundUnsent bounds the unsent bytes that the kernel queues, so that an urgent call need not wait
// behind them. It works on Linux, for a TCP socket, which may be below a [*tls.Conn]. It is for
// transports that do not use [FromConn], and best effort.
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
