package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// FromConn returns a Wire over c, which it owns from now on. Each frame goes behind its length as 4
// bytes, big endian; the other end must do the same.
//
// Of c are required: bytes arrive in order and without loss; one Read and one Write may run at the
// same time, and Close at any time, which ends both. c also names the ends if it has the methods
// LocalAddr and RemoteAddr of [net.Conn].
//
// The Wire is a [BatchWriter], [Buffered] and a [Meter]. It is [Secure] if c is a [*tls.Conn], and
// a [TryWriter] and [VectorWriter] if c is a [*net.TCPConn] or [*net.UnixConn] on a Unix system.
//
// If c is a net.Conn, the Wire has its SetReadDeadline and SetWriteDeadline. After a deadline,
// ReadFrame and writing fail with an error that wraps [os.ErrDeadlineExceeded]. Nothing is lost by
// that for ReadFrame: with a later deadline it goes on where it was, unless it was in a TLS
// handshake. Of what was being written a part may have been sent, so the Wire cannot be written
// after that.
//
// While it waits for a frame it holds little more than 1 KiB of memory for it, and none on such a
// socket, whatever came before. How much it holds for a frame that is arriving follows what has
// arrived, not what is announced: 32 KiB, or twice that. A TLS connection has memory of its own, 20
// to 30 KiB once it has received a whole record, which stays with it.
func FromConn(c io.ReadWriteCloser) Wire {
	if c, ok := c.(*tls.Conn); ok {
		transport.BoundUnsent(c)
		return &tlsWire{connWire{newStreamWire(hastyTLS{c}), c}, c}
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

// streamWire is the Wire over a stream of bytes.
type streamWire struct {
	conn          io.ReadWriteCloser // these are fixed
	local, remote net.Addr

	closed atomic.Bool // Close was called

	received, sent atomic.Uint64 // bytes
	in             reader        // belongs to the reading goroutine
	out            writer        // belongs to the writing goroutine
}

func newStreamWire(c io.ReadWriteCloser) *streamWire {
	s := &streamWire{conn: c, in: reader{src: &plainSource{r: c}}}
	s.in.received = &s.received
	s.local, s.remote = transport.Addrs(c, "stream")
	return s
}

// ReadFrame implements Wire.
func (s *streamWire) ReadFrame(max int) ([]byte, error) {
	if s.closed.Load() { // what has arrived already is not delivered any more either
		return nil, s.in.fail(errReadClosed)
	}
	frame, err := s.in.frame(max)
	if err != nil {
		return nil, s.readError(err)
	}
	return frame, nil
}

var errReadClosed = fmt.Errorf("wire: read: %w", net.ErrClosed)

func (s *streamWire) readError(err error) error {
	switch {
	case s.closed.Load():
		return errReadClosed // whatever a closed conn says
	case err == io.EOF, errors.Is(err, ErrFrameTooLarge):
		return err
	}
	return fmt.Errorf("wire: read: %w", err)
}

// Progress implements Meter.
func (s *streamWire) Progress() (received, sent uint64) { return s.received.Load(), s.sent.Load() }

// Receiving implements Meter.
func (s *streamWire) Receiving() int { return int(s.in.aside.Load()) }

// Buffered implements Buffered.
func (s *streamWire) Buffered() bool { return s.in.buffered() && !s.closed.Load() }

// Keep implements Buffered.
func (s *streamWire) Keep() *transport.Buffer { return (*transport.Buffer)(s.in.keep()) }

// Close implements Wire.
func (s *streamWire) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.conn.Close(); err != nil {
		return fmt.Errorf("wire: close: %w", err)
	}
	return nil
}

// LocalAddr implements Wire.
func (s *streamWire) LocalAddr() net.Addr { return s.local }

// RemoteAddr implements Wire.
func (s *streamWire) RemoteAddr() net.Addr { return s.remote }
