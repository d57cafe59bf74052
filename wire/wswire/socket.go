//go:build !js

package wswire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// forever is a context for calls that need none: closing the connection ends every wait.
var forever = context.Background()

// farewell limits how long Close waits for a peer that does not read.
const farewell = 100 * time.Millisecond

// socket is the Wire over a WebSocket.
type socket struct {
	ws            *websocket.Conn // these are fixed
	conn          *conn           // below ws
	client        bool            // this side dialled; its frames have to be masked
	local, remote net.Addr
	place         transport.Place // nil: there is no door

	closed  atomic.Bool                          // Close was called
	refused atomic.Pointer[websocket.CloseError] // sent by Close; nil: no error

	// belongs to the reading goroutine, as readErr; holds the latest frame, unless that is larger;
	// nil between frames
	in      *[chunk]byte
	readErr error // the error of further reads

	// aside is the memory of a partly received message, in bytes. The reading goroutine writes it.
	aside atomic.Int64

	writeErr error // belongs to the holder of conn; the error of further writes
}

// newSocket returns the Wire over ws. state is its TLS state; nil: not TLS. place is its place at a
// door; nil: there is no door.
func newSocket(ws *websocket.Conn, conn *conn, client bool, state *tls.ConnectionState, place transport.Place) wire.Wire {
	ws.SetReadLimit(-1) // ReadFrame has its own
	s := &socket{ws: ws, conn: conn, client: client, local: conn.LocalAddr(), remote: conn.RemoteAddr(), place: place}
	if state == nil {
		return s
	}
	return &secureSocket{s, *state}
}

// secureSocket is a socket over TLS.
type secureSocket struct {
	*socket
	state tls.ConnectionState // fixed
}

// ConnectionState implements wire.Secure.
func (s *secureSocket) ConnectionState() tls.ConnectionState { return s.state }

// LocalAddr implements wire.Wire.
func (s *socket) LocalAddr() net.Addr { return s.local }

// RemoteAddr implements wire.Wire.
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// Place implements transport.Admitted.
func (s *socket) Place() transport.Place { return s.place }

// Progress implements wire.Meter.
func (s *socket) Progress() (received, sent uint64) {
	return s.conn.received.Load(), s.conn.sent.Load()
}

// Receiving implements wire.Meter.
func (s *socket) Receiving() int { return int(s.aside.Load()) }

// ReadFrame implements wire.Wire.
func (s *socket) ReadFrame(max int) ([]byte, error) {
	s.letGo()
	if s.closed.Load() {
		return nil, errReadClosed
	}
	if s.readErr != nil {
		return nil, s.readErr
	}
	frame, err := s.message(min(max, most))
	switch {
	case err == nil:
		return frame, nil
	case s.closed.Load():
		err = errReadClosed // instead of the error of a closed connection
	case !errors.Is(err, wire.ErrFrameTooLarge) && !errors.Is(err, errText):
		err = readError(err)
	}
	s.letGo()
	s.readErr = err
	return nil, err
}

// letGo releases the memory of the latest frame, unless the frame was too large for it.
func (s *socket) letGo() {
	if s.in != nil {
		chunks.Put(s.in)
		s.in = nil
	}
}

// message waits for the next message and returns it.
func (s *socket) message(max int) ([]byte, error) {
	kind, r, err := s.ws.Reader(forever)
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageBinary {
		s.refuse(websocket.StatusUnsupportedData, "a text message; frames are binary messages")
		return nil, errText
	}
	s.in = chunks.Get().(*[chunk]byte)
	mem, n := s.in[:], 0
	s.aside.Store(chunk)
	defer s.aside.Store(0)
	for {
		if n == len(mem) {
			larger := make([]byte, 2*n) // regardless of the announced length
			copy(larger, mem)
			s.letGo()
			mem = larger
			s.aside.Store(int64(len(mem)))
		}
		k, err := r.Read(mem[n:min(len(mem), max+1)])
		n += k
		switch {
		case n > max:
			s.refuse(websocket.StatusMessageTooBig, fmt.Sprintf("a message of more than %d bytes", max))
			return nil, fmt.Errorf("%w: a message has more than the %d bytes allowed", wire.ErrFrameTooLarge, max)
		case err == io.EOF && s.conn.ended: // of the connection, not of the message
			return nil, io.ErrUnexpectedEOF
		case err == io.EOF:
			return mem[:n:n], nil
		case err != nil:
			return nil, err
		}
	}
}

// refuse sets the code and reason that Close sends to the peer. Until then this side may write, so
// that a session can send its own reason.
func (s *socket) refuse(code websocket.StatusCode, reason string) {
	s.refused.Store(&websocket.CloseError{Code: code, Reason: reason})
}

// WriteFrames implements wire.Wire.
func (s *socket) WriteFrames(frames [][]byte) error {
	return s.write(func(e *encoder) error {
		for _, f := range frames {
			if err := e.message(f); err != nil {
				return err
			}
		}
		return e.flush()
	})
}

// WriteBatch implements wire.BatchWriter.
func (s *socket) WriteBatch(batch []byte) error {
	return s.write(func(e *encoder) error {
		for len(batch) > 0 {
			n := 4 + int(binary.BigEndian.Uint32(batch))
			if err := e.message(batch[4:n]); err != nil {
				return err
			}
			batch = batch[n:]
		}
		return e.flush()
	})
}

// write runs all, which writes frames.
func (s *socket) write(all func(e *encoder) error) error {
	s.conn.hold()
	defer s.conn.letGo()
	if s.closed.Load() {
		return errWriteClosed
	}
	if s.writeErr != nil {
		return s.writeErr
	}
	mem := chunks.Get().(*[chunk]byte)
	defer chunks.Put(mem)
	err := all(&encoder{w: heldConn{s.conn}, client: s.client, out: mem})
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return errWriteClosed // instead of the error of a closed connection
	case errors.Is(err, net.ErrClosed):
		// not by Close: the library closes the connection when the peer has closed the WebSocket
		err = syscall.EPIPE
	}
	s.writeErr = fmt.Errorf("wire: write: %w", err)
	return s.writeErr
}

// Close implements wire.Wire. It notifies the peer, unless a writer is in the middle of a message,
// and does not wait for the answer.
func (s *socket) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.conn.writing.TryLock() {
		s.goodbye()
		s.conn.writing.Unlock()
	}
	s.ws.CloseNow() // its only error is that it was closed already
	if s.place != nil {
		s.place.Leave()
	}
	return nil
}

// goodbye sends the Close frame. The library's own Close would wait for the peer's Close frame,
// which needs a reader.
func (s *socket) goodbye() {
	say, refused := websocket.CloseError{Code: websocket.StatusNormalClosure}, s.refused.Load()
	if refused != nil {
		say = *refused
	}
	s.conn.SetWriteDeadline(time.Now().Add(farewell))
	if _, err := s.conn.Conn.Write(closeFrame(say, s.client)); err != nil || refused == nil {
		return
	}
	// Bytes that the peer still sends must be read from the system, which would otherwise reset the
	// connection and lose the Close frame.
	s.conn.SetReadDeadline(time.Now().Add(farewell))
	io.Copy(io.Discard, s.conn.Conn)
}

// closeFrame returns a Close frame: RFC 6455, section 5.5.1.
func closeFrame(say websocket.CloseError, client bool) []byte {
	payload := append(binary.BigEndian.AppendUint16(nil, uint16(say.Code)), say.Reason...)
	frame, key := appendHeader(nil, opClose, len(payload), client)
	mask(payload, key)
	return append(frame, payload...)
}

// most is the largest limit that can be exceeded by one.
const most = math.MaxInt - 1
