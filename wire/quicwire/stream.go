package quicwire

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

const (
	// the time for which Close waits for the peer's Close, and for which the peer's writes are
	// still accepted
	farewell = 100 * time.Millisecond
	// the time for a peer that has not closed to read the data written before Close
	lingers = 4 * time.Second
)

// quicWire is the Wire over a stream.
type quicWire struct {
	streamWire
	stream *streamConn // fixed
}

// streamWire is the interface of the Wire that wire.FromConn returns for a net.Conn.
type streamWire interface {
	wire.Wire
	wire.BatchWriter
	wire.Buffered
	wire.Meter
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

func newWire(s *streamConn) wire.Wire { return &quicWire{wire.FromConn(s).(streamWire), s} }

// ConnectionState implements wire.Secure.
func (w *quicWire) ConnectionState() tls.ConnectionState { return w.stream.conn.ConnectionState().TLS }

// Place implements transport.Admitted.
func (w *quicWire) Place() transport.Place { return w.stream.placed() }

// streamConn makes a net.Conn of a QUIC stream. Close of the stream itself ends one direction only,
// and must not run during a Write.
//
// Both sides end as TCP does: each ends its own direction, and reads until the other side has
// ended too. Only then is the stream over, and the dialling side may close the connection; closing
// it sooner would discard data that the peer has received and not read. A peer that continues to
// write instead of closing gets a stop after a moment, which ends its writes. In that case, this
// side learns of the peer's Close only by the end of the connection.
type streamConn struct {
	conn *quic.Conn // these are fixed
	quic *quic.Stream
	over func() // called once, when the stream has no user any more

	reading, writing sync.Mutex // held during Read and Write, and then by Close

	mu     sync.Mutex
	closed bool            // guarded by mu; no deadline is set once it is true but those of Close
	place  transport.Place // guarded by mu; nil: there is no door
}

// Read implements net.Conn.
func (s *streamConn) Read(p []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.isClosed() {
		return 0, net.ErrClosed
	}
	n, err := s.quic.Read(p)
	return n, fault(err)
}

// Write implements net.Conn.
func (s *streamConn) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.isClosed() {
		return 0, net.ErrClosed
	}
	n, err := s.quic.Write(p)
	return n, fault(err)
}

func (s *streamConn) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close implements net.Conn. It blocks briefly for the peer's Close.
func (s *streamConn) Close() error {
	defer func() { leave(s.placed()) }()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.quic.SetDeadline(time.Now()) // wakes Read and Write
	s.mu.Unlock()
	s.writing.Lock() // Write has returned, and none begins
	s.quic.Close()
	s.writing.Unlock()
	if s.drain() {
		s.over()
		return nil
	}
	go s.linger() // ends when the peer has closed, and after lingers
	return nil
}

func (s *streamConn) setPlace(p transport.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place = p
}

func (s *streamConn) placed() transport.Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}

// drain reads until the peer has closed, and reports whether that was in time.
func (s *streamConn) drain() bool {
	s.reading.Lock() // Read has returned, and none begins
	defer s.reading.Unlock()
	s.quic.SetReadDeadline(time.Now().Add(farewell))
	buf := make([]byte, 4<<10)
	for {
		if _, err := s.quic.Read(buf); err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// linger gives the peer time to read, until it closes or the time limit expires.
func (s *streamConn) linger() {
	defer s.over()
	s.quic.SetReadDeadline(time.Now().Add(lingers))
	if n, _ := s.quic.Read(make([]byte, 1)); n == 0 {
		return
	}
	s.quic.CancelRead(codeClosed) // the peer does not read, but writes; now its writes fail
	timer := time.NewTimer(lingers)
	defer timer.Stop()
	select {
	case <-s.conn.Context().Done():
	case <-timer.C:
	}
}

// SetDeadline implements net.Conn.
func (s *streamConn) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (s *streamConn) SetReadDeadline(t time.Time) error {
	return s.setDeadline(s.quic.SetReadDeadline, t)
}

// SetWriteDeadline implements net.Conn.
func (s *streamConn) SetWriteDeadline(t time.Time) error {
	return s.setDeadline(s.quic.SetWriteDeadline, t)
}

func (s *streamConn) setDeadline(set func(time.Time) error, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	return set(t)
}

// LocalAddr implements net.Conn.
func (s *streamConn) LocalAddr() net.Addr { return s.conn.LocalAddr() }

// RemoteAddr implements net.Conn.
func (s *streamConn) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

// leave leaves a place, if there is one.
func leave(p transport.Place) {
	if p != nil {
		p.Leave()
	}
}
