//go:build !js

package wswire

import (
	"net"
	"sync"
	"sync/atomic"
)

// conn is the connection below a WebSocket. The library writes control frames to it, each in one
// Write. The writer of data frames holds the conn meanwhile. The library gives up on a control
// frame, and on the whole connection, if it takes five seconds, which says only that the peer does
// not read. So a control frame that finds the conn held is left for the holder, which writes it
// between two messages. If several are left, the conn keeps only the latest, which RFC 6455,
// section 5.5.3, allows for answers to pings.
type conn struct {
	net.Conn // fixed

	// belongs to the reading goroutine; the peer has ended, and more was expected
	ended bool

	received, sent atomic.Uint64 // bytes

	writing sync.Mutex // the writer holds it, even while the peer blocks it

	mu   sync.Mutex
	left []byte // guarded by mu; a control frame for the holder of writing; nil: none
}

// Read implements net.Conn. The library mistakes the end of the connection inside a message for the
// end of the message, if it falls between two of its reads. So Read records the end, and does not
// return it together with bytes, so that an incomplete message is detected.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(uint64(n))
	if err != nil && n > 0 {
		return n, nil // the next Read returns it again
	}
	c.ended = err != nil
	return n, err
}

// Write implements net.Conn, for control frames and the HTTP request or answer.
func (c *conn) Write(p []byte) (int, error) {
	if c.writing.TryLock() {
		n, err := c.Conn.Write(p)
		c.writing.Unlock()
		return n, err
	}
	c.leave(append([]byte{}, p...))
	c.writeLeft() // the holder may have released it before it saw the frame
	return len(p), nil
}

// heldConn is the view of a conn for the writer that holds it.
type heldConn struct{ *conn }

// piece is how many bytes are written at once, so that progress is visible.
const piece = 128 << 10

// Write implements io.Writer.
func (h heldConn) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		n, err = h.Conn.Write(p[written:min(len(p), written+piece)])
		written += n
		h.sent.Add(uint64(n))
	}
	return written, err
}

// hold waits until no other goroutine writes.
func (c *conn) hold() { c.writing.Lock() }

// letGo ends hold.
func (c *conn) letGo() {
	c.writing.Unlock()
	c.writeLeft()
}

// writeLeft writes control frames that were left, unless the connection is held again. An error is
// returned by the next data frame, or by the reader.
func (c *conn) writeLeft() {
	for c.hasLeft() && c.writing.TryLock() {
		if p := c.leave(nil); p != nil {
			c.Conn.Write(p)
		}
		c.writing.Unlock()
	}
}

func (c *conn) hasLeft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left != nil
}

// leave stores p, or nil, and returns the value stored before.
func (c *conn) leave(p []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.left
	c.left = p
	return was
}
