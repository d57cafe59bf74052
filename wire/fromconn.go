package wire

import (
	"crypto/tls"
	"io"
	"net"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// FromConn returns a Wire over c. The Wire owns c. Each frame is preceded by its length as 4 bytes,
// big endian; the other end must use the same form.
//
// c has to carry bytes in order and without loss. One Read and one Write may run at the same time,
// and Close at any time, which ends both. c names the ends if it has the methods LocalAddr and
// RemoteAddr of [net.Conn].
//
// The Wire is a [BatchWriter], [Buffered] and a [Meter]. It is [Secure] if c is a [*tls.Conn], and
// a [TryWriter] and [VectorWriter] if c is a [*net.TCPConn] or [*net.UnixConn] on a Unix system.
//
// If c is a net.Conn, the Wire has its SetReadDeadline and SetWriteDeadline. After a deadline,
// ReadFrame and writing fail with an error that wraps [os.ErrDeadlineExceeded]. A read deadline
// loses nothing: after a later deadline is set, ReadFrame continues where it stopped, except in a
// TLS handshake. A write deadline may leave a part of a frame sent, so the Wire cannot be written
// to again.
//
// While the Wire waits for a frame, it holds little more than 1 KiB of memory, whatever the size of
// earlier frames, and none on a socket of a Unix system. For a frame that is arriving it holds 32
// KiB, or up to twice the bytes that have arrived; the announced length has no influence.
//
// A TLS connection has memory of its own: 20 to 30 KiB once it has received a whole record, which
// it keeps.
func FromConn(c io.ReadWriteCloser) Wire {
	if c, ok := c.(*tls.Conn); ok {
		transport.BoundUnsent(c)
		return &tlsWire{connWire{newStreamWire(fastCloseTLS{c}), c}, c}
	}
	s := newStreamWire(c)
	n, ok := c.(net.Conn)
	if !ok {
		return s
	}
	if w, ok := newSocketWire(s, n); ok {
		return w
	}
	return &connWire{s, n}
}
