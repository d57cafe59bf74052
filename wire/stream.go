package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// streamWire is the Wire over a stream of bytes.
type streamWire struct {
	conn          io.ReadWriteCloser // these are fixed
	local, remote net.Addr

	closed atomic.Bool // Close was called

	received atomic.Uint64 // bytes
	in       frameReader   // belongs to the reading goroutine
	out      frameWriter   // belongs to the writing goroutine
}

func newStreamWire(c io.ReadWriteCloser) *streamWire {
	s := &streamWire{conn: c, in: frameReader{src: &plainSource{r: c}}}
	s.in.received = &s.received
	s.out.conn, s.out.closed = c, &s.closed
	s.local, s.remote = transport.Addrs(c, "stream")
	return s
}

// ReadFrame implements Wire.
func (s *streamWire) ReadFrame(max int) ([]byte, error) {
	if s.closed.Load() { // frames that have arrived are not delivered any more either
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
		return errReadClosed // instead of the error of a closed conn
	case err == io.EOF, errors.Is(err, ErrFrameTooLarge):
		return err
	}
	return fmt.Errorf("wire: read: %w", err)
}

// WriteFrames implements Wire.
func (s *streamWire) WriteFrames(frames [][]byte) error { return s.out.frames(frames) }

// WriteBatch implements BatchWriter.
func (s *streamWire) WriteBatch(batch []byte) error { return s.out.batch(batch) }

// Progress implements Meter.
func (s *streamWire) Progress() (received, sent uint64) { return s.received.Load(), s.out.sent.Load() }

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
