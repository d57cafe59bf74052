package smuxwire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// headerSize is that of a smux frame: version, command, length of the payload (2 bytes), stream (4
// bytes), little endian.
const headerSize = 8

// Commands of smux that matter here.
const (
	commandOpen   = 0 // SYN
	commandClose  = 1 // FIN
	commandData   = 2 // PSH
	commandNone   = 3 // NOP
	commandUpdate = 4 // UPD: bytes read, and the window; 4 bytes each
)

// frameEvents receives frames before the library gets them, and before they are sent.
type frameEvents interface {
	opened(id uint32) error          // by the peer
	closed(id uint32)                // by the peer
	arriving(id uint32)              // anything
	data(id uint32, bytes int) error // from the peer
	granted(id, limit uint32)        // to the peer: total bytes that it may send
}

// conn is the connection below smux. It reads ahead, because the library reads each header and each
// payload separately. It inspects the headers to report events that the library does not: the peer
// has closed a stream (its writer would wait forever), or the peer uses another protocol.
//
// It also enforces limits that the library leaves to the peer: to send no more than a window
// allows, and no crowd of small frames. While the crowd is full, it does not read.
type conn struct {
	io.ReadWriteCloser // these are fixed
	version            byte
	on                 frameEvents

	in   *bufio.Reader // belongs to the library's reading goroutine, as all below
	head [headerSize]byte
	have int  // bytes of head that have arrived
	skip int  // bytes of a payload to come
	any  bool // something has arrived

	frames  *frameCounter
	closing atomic.Bool
	closed  chan struct{} // closed by Close
	once    sync.Once     // closes ReadWriteCloser

	place transport.Place // of the connection; nil: there is no door; fixed
}

func newConn(c io.ReadWriteCloser, version byte, on frameEvents) *conn {
	return &conn{
		ReadWriteCloser: c, version: version, on: on, in: bufio.NewReaderSize(c, frameSize),
		frames: newCrowd(math.MaxInt, math.MaxInt), closed: make(chan struct{}),
	}
}

// Read implements io.Reader. The library asks for headers and for payloads, one by one.
func (c *conn) Read(p []byte) (int, error) {
	if c.have == 0 && c.skip == 0 && len(p) >= headerSize && c.wait() {
		return copy(p, []byte{c.version, commandNone, 0, 0, 0, 0, 0, 0}), nil
	}
	if c.closing.Load() {
		return 0, c.discard()
	}
	n, err := c.in.Read(p)
	if err != nil && c.closing.Load() {
		c.finish() // the peer has closed, too
	}
	if err == io.EOF && !c.any {
		return 0, errMute
	}
	c.any = true
	if bad := c.look(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

// still is how long the library waits without a frame: after 30 seconds it would consider the peer
// lost.
const still = 10 * time.Second

// wait waits while the crowd is full, and reports whether it still is after a while.
func (c *conn) wait() bool {
	for c.frames.full() {
		timer := time.NewTimer(still)
		select {
		case <-c.frames.fewer:
			timer.Stop()
		case <-c.closed:
			timer.Stop()
			return false
		case <-timer.C:
			return true
		}
	}
	return false
}

// discard reads the rest of a closed connection, to its end.
func (c *conn) discard() error {
	_, err := io.Copy(io.Discard, c.in)
	c.finish()
	if err == nil {
		err = io.EOF
	}
	return err
}

// Write implements io.Writer. The library writes each frame by itself.
func (c *conn) Write(p []byte) (int, error) {
	if len(p) == headerSize+8 && p[1] == commandUpdate {
		id, read := binary.LittleEndian.Uint32(p[4:]), binary.LittleEndian.Uint32(p[headerSize:])
		c.on.granted(id, read+binary.LittleEndian.Uint32(p[headerSize+4:]))
	}
	return c.ReadWriteCloser.Write(p)
}

var errMute = fmt.Errorf("the peer closed the connection without a word; does it speak version 2 of smux?: %w", io.ErrUnexpectedEOF)

// look follows the frames in p.
func (c *conn) look(p []byte) error {
	for len(p) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(p))
			c.skip, p = c.skip-n, p[n:]
			continue
		}
		n := copy(c.head[c.have:], p)
		c.have, p = c.have+n, p[n:]
		if c.head[0] != c.version {
			return c.stranger()
		}
		if c.have < headerSize {
			return nil
		}
		c.have, c.skip = 0, int(binary.LittleEndian.Uint16(c.head[2:]))
		if err := c.frame(c.head[1], binary.LittleEndian.Uint32(c.head[4:]), c.skip); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) frame(command byte, id uint32, size int) error {
	switch command {
	case commandOpen:
		return c.on.opened(id)
	case commandClose:
		c.on.closed(id)
	}
	c.on.arriving(id)
	if command == commandData && size > 0 {
		return c.on.data(id, size)
	}
	return nil
}

// stranger returns the error that names the protocol of the peer.
func (c *conn) stranger() error {
	if v := c.head[0]; v == 1 || v == 2 {
		return fmt.Errorf("the peer speaks version %d of smux, and this side version %d; the peer has to be configured for that, in smux.Config.Version", v, c.version)
	}
	seen := c.head[:c.have]
	return fmt.Errorf("the peer does not speak smux: it sent %q; is it a \"tcp\" or \"tls\" Wire, or no Wire at all?", seen)
}

// farewell limits how long a closed connection, or stream, waits for its peer.
const farewell = time.Second

// Close implements io.Closer. It ends writing at once. Reading ends when the peer has closed as
// well, or after farewell: bytes that still arrive must be read from the system, which would
// otherwise reset the connection and lose data that the peer has not read yet.
func (c *conn) Close() error {
	if c.closing.Swap(true) {
		return nil
	}
	close(c.closed)
	half, ok := c.ReadWriteCloser.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		c.finish()
		return nil
	}
	time.AfterFunc(farewell, c.finish)
	return nil
}

func (c *conn) finish() {
	c.once.Do(func() {
		c.ReadWriteCloser.Close()
		leave(c.place)
	})
}

// LocalAddr returns nil if the connection does not know it.
func (c *conn) LocalAddr() net.Addr {
	if n, ok := c.ReadWriteCloser.(interface{ LocalAddr() net.Addr }); ok {
		return n.LocalAddr()
	}
	return nil
}

// RemoteAddr returns nil if the connection does not know it.
func (c *conn) RemoteAddr() net.Addr {
	if n, ok := c.ReadWriteCloser.(interface{ RemoteAddr() net.Addr }); ok {
		return n.RemoteAddr()
	}
	return nil
}

// leave leaves a place, if there is one.
func leave(p transport.Place) {
	if p != nil {
		p.Leave()
	}
}
