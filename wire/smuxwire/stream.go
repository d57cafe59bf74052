package smuxwire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/xtaci/smux"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// stream is the net.Conn over a stream of smux.
type stream struct {
	mux    streamOwner   // these are fixed
	frames *frameCounter // of its connection
	id     uint32

	// smux is set once, before there is a Wire. Without a reference the library would close it; the
	// Mux holds one as long as the stream is open.
	smux *smux.Stream

	mu    sync.Mutex      // also guards the write deadline, and smux until it is set
	ended bool            // guarded by mu; the peer has closed, and all its data has arrived
	in    receiveBuffer   // guarded by mu
	place transport.Place // guarded by mu; nil: there is no door
}

// streamOwner is the view of its Mux for a stream.
type streamOwner interface {
	Err() error       // the reason of its end; nil while it is up
	remove(s *stream) // is called when this side has closed the stream
}

func newStream(m streamOwner, c *frameCounter, id uint32) *stream {
	return &stream{mux: m, frames: c, id: id, in: receiveBuffer{granted: initialWindow}}
}

// hasBegun reports whether the stream of the library is set.
func (s *stream) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.smux != nil
}

// begin sets the stream of the library for one that the peer opened.
func (s *stream) begin(opened *smux.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.smux = opened
	if s.ended {
		s.endWritingLocked()
	}
}

// end is called when the peer has closed the stream. The library does not wake a waiting writer, so
// end sets its deadline.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.smux != nil {
		s.endWritingLocked()
	}
}

func (s *stream) endWritingLocked() { s.smux.SetWriteDeadline(time.Unix(1, 0)) }

func (s *stream) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Read implements net.Conn.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.read(p)
	if err == nil || n > 0 {
		// an error beside bytes only means that the window update failed; if it matters, the next
		// Read returns it
		return n, nil
	}
	if errors.Is(err, smux.ErrTimeout) {
		return 0, os.ErrDeadlineExceeded
	}
	ended := s.hasEnded()
	if n, _ := s.read(p); n > 0 {
		// the library may report the end of the connection before the last bytes
		return n, nil
	}
	switch {
	case ended:
		return 0, io.EOF
	case s.mux.Err() != nil:
		return 0, s.mux.Err()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
		return 0, errCut
	}
	return 0, err
}

// read is the library's Read.
func (s *stream) read(p []byte) (int, error) {
	n, err := s.smux.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.taken(n, s.frames)
	return n, err
}

// forget is called when the stream has no unread frames any more.
func (s *stream) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.forget(s.frames)
}

var errCut = fmt.Errorf("the connection below, which carries other wires too, has ended: %w", io.ErrUnexpectedEOF)

// pieces holds unused buffers of frameSize bytes.
var pieces = sync.Pool{New: func() any { return new([frameSize]byte) }}

// Write implements net.Conn. It copies p, because the library keeps bytes that it could not write
// in time, and sends them later with whatever content they have then.
func (s *stream) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		if s.hasEnded() {
			return written, errPeerClosed
		}
		mem := pieces.Get().(*[frameSize]byte)
		n, err := s.smux.Write(mem[:copy(mem[:], p[written:])])
		written += n
		if err != nil {
			return written, s.writeError(err) // the library keeps mem
		}
		pieces.Put(mem)
	}
	return written, nil
}

var errPeerClosed = fmt.Errorf("the peer has closed: %w", syscall.EPIPE)

// writeError converts an error of the library.
func (s *stream) writeError(err error) error {
	switch {
	case s.hasEnded():
		return errPeerClosed
	case errors.Is(err, smux.ErrTimeout):
		return os.ErrDeadlineExceeded
	case s.mux.Err() != nil:
		return s.mux.Err()
	}
	return err
}

// Close implements net.Conn. It wakes all waiting goroutines at once, and blocks only briefly for
// the notification of the peer.
func (s *stream) Close() error {
	told := make(chan struct{})
	go func() {
		// ends when the peer is notified, or with the Mux; at the latest after the library's time
		// limit of 30 seconds
		defer close(told)
		s.smux.Close() // its only error is that the peer was not notified
		s.mux.remove(s)
	}()
	timer := time.NewTimer(farewell / 10)
	defer timer.Stop()
	select {
	case <-told:
	case <-timer.C:
	}
	leave(s.placed())
	return nil
}

// refuse closes a stream beyond the limit. It blocks until the peer is notified: a peer that opens
// streams and does not read is not read either.
func (s *stream) refuse() {
	s.smux.Close() // its only error is that the peer was not notified
	s.mux.remove(s)
	leave(s.placed())
}

func (s *stream) setPlace(p transport.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place = p
}

func (s *stream) placed() transport.Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}

// SetReadDeadline implements net.Conn.
func (s *stream) SetReadDeadline(t time.Time) error { return s.smux.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (s *stream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil // the deadline that end has set must stay
	}
	return s.smux.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (s *stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// LocalAddr implements net.Conn.
func (s *stream) LocalAddr() net.Addr { return s.smux.LocalAddr() }

// RemoteAddr implements net.Conn.
func (s *stream) RemoteAddr() net.Addr { return s.smux.RemoteAddr() }
