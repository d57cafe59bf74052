package wire

import "syscall"

// tcpNotSentLowat is TCP_NOTSENT_LOWAT of tcp(7), which package syscall does not name.
const tcpNotSentLowat = 25

// maxNotSent is how many bytes a TCP socket takes before they can be sent. What waits in the kernel can no longer be overtaken by anything urgent, and a socket's send
// buffer may hold megabytes; what has been sent and is not acknowledged does not count, so that the throughput stays.
const maxNotSent = 32 << 10

// boundNotSent bounds what waits in the kernel. It is best effort: a socket that does not know the option works as well.
func boundNotSent(raw syscall.RawConn) {
	raw.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, maxNotSent)
	})
}
