package classicwire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/wire"
)

// classicWire is the Wire that translates.
type classicWire struct {
	conn          io.ReadWriteCloser // these are fixed
	server        bool
	local, remote net.Addr

	pipes table // these lock themselves
	made  made
	owed  owed
	once  sync.Once
	done  chan struct{} // closed by Close
	sent  atomic.Uint64 // bytes

	in     input        // belongs to the reading goroutine, as all below
	frame  []byte       // what ReadFrame returned
	synced bool         // the peer's SyncConfig has come
	asked  classic.Sync // it; read again by the handshake alone, which reads and then writes

	writing  sync.Mutex // held by who writes conn
	writeErr error      // guarded by writing, as all below; why nothing can be written any more
	parting  bool       // the end of the session is among what is being written
	parted   bool       // and has been written

	mu sync.Mutex
	// guarded by mu; what Close tells the peer, if it was not told yet; nil: nothing
	farewell []byte
}

func newClassicWire(c io.ReadWriteCloser, server bool) *classicWire {
	w := &classicWire{conn: c, server: server, done: make(chan struct{})}
	w.pipes.init(server)
	w.made.ready = make(chan struct{}, 1)
	w.in = input{conn: c, done: w.done, ask: make(chan []byte), got: make(chan taken, 1)}
	w.local, w.remote = addrs(c)
	return w
}

var (
	errReadClosed  = fmt.Errorf("classicwire: read: %w", net.ErrClosed)
	errWriteClosed = fmt.Errorf("classicwire: write: %w", net.ErrClosed)
)

func (w *classicWire) closed() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// ReadFrame implements wire.Wire. Beside the errors that a Wire has there are those of a peer that
// breaks the classic protocol: they wrap codec.ErrProtocol, and in the handshake they are a
// *codec.Abort.
func (w *classicWire) ReadFrame(max int) ([]byte, error) {
	w.rest()
	for {
		if w.closed() {
			return nil, errReadClosed
		}
		if frame := w.made.take(); frame != nil {
			return frame, nil
		}
		m, err := w.in.next(min(max, classic.MaxMessage))
		if err == errNothing {
			err = w.in.wait(w.made.ready)
			if err == nil {
				continue
			}
		}
		if err == nil {
			w.frame, err = w.inbound(w.frame[:0], m)
		}
		if err != nil {
			return nil, w.readError(err)
		}
		if len(w.frame) > max {
			return nil, fmt.Errorf("%w: %d bytes, %d allowed", wire.ErrFrameTooLarge, len(w.frame), max)
		}
		if len(w.frame) > 0 {
			return w.frame, nil
		}
	}
}

// rest lets go of a large frame, which the session no longer needs, before it may be long until the
// next.
func (w *classicWire) rest() {
	if cap(w.frame) > idleRead && w.in.empty() {
		w.frame = nil
	}
	w.in.rest()
}

// Progress implements wire.Meter.
func (w *classicWire) Progress() (received, sent uint64) { return w.in.received.Load(), w.sent.Load() }

// Receiving implements wire.Meter.
func (w *classicWire) Receiving() int { return int(w.in.aside.Load()) }

// readError makes the error that the session sees.
func (w *classicWire) readError(err error) error {
	var abort *codec.Abort
	var long *classic.SizeError
	switch {
	case w.closed():
		return errReadClosed // whatever a closed conn says
	case err == io.EOF:
		w.part(nil) // nobody is there to be told anything
		return io.EOF
	case !w.synced && (errors.Is(err, codec.ErrProtocol) || errors.Is(err, codec.ErrTooLarge)):
		return w.stranger(err)
	case errors.As(err, &abort):
		return err
	case errors.As(err, &long):
		return fmt.Errorf("%w: %v", wire.ErrFrameTooLarge, err)
	}
	return fmt.Errorf("classicwire: read: %w", err)
}

// WriteFrames implements wire.Wire.
func (w *classicWire) WriteFrames(frames [][]byte) error {
	return w.write(func(yield func([]byte) bool) {
		for _, f := range frames {
			if !yield(f) {
				return
			}
		}
	})
}

// Close implements wire.Wire. If the session ends without a word, it tells the peer, so that the
// original does not connect again.
func (w *classicWire) Close() (err error) {
	w.once.Do(func() {
		close(w.done)
		defer time.AfterFunc(farewellTime, w.cut).Stop()
		// whoever writes gets to the end of a message, unless the peer does not read
		w.writing.Lock()
		w.sayFarewell()
		w.writing.Unlock()
		if e := w.conn.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
			// cut may have been first
			err = fmt.Errorf("classicwire: close: %w", e)
		}
	})
	return err
}

// farewellTime limits how long Close waits for a peer that does not read.
const farewellTime = 100 * time.Millisecond

// cut closes the connection without waiting for anything.
func (w *classicWire) cut() {
	if t, ok := w.conn.(*tls.Conn); ok { // whose Close waits
		t.NetConn().Close()
		return
	}
	w.conn.Close()
}

// sayFarewell is called with writing held.
func (w *classicWire) sayFarewell() {
	w.mu.Lock()
	words := w.farewell
	w.mu.Unlock()
	if words != nil && !w.parted && w.writeErr == nil {
		w.conn.Write(words) // the connection is closed anyway
	}
}

// part sets what Close tells the peer.
func (w *classicWire) part(words []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.farewell = words
}

// LocalAddr implements wire.Wire.
func (w *classicWire) LocalAddr() net.Addr { return w.local }

// RemoteAddr implements wire.Wire.
func (w *classicWire) RemoteAddr() net.Addr { return w.remote }

// addr is the address of an end that has none in a network.
type addr string

// Network implements net.Addr.
func (addr) Network() string { return "classic" }

// String implements net.Addr.
func (a addr) String() string { return string(a) }

// addrs returns the addresses of the ends of c, which need not know them.
func addrs(c any) (local, remote net.Addr) {
	if n, ok := c.(net.Conn); ok {
		local, remote = n.LocalAddr(), n.RemoteAddr()
	}
	if local == nil {
		local = addr("local")
	}
	if remote == nil {
		remote = addr("remote")
	}
	return local, remote
}

// made holds the frames that the Wire itself has for the session. It locks itself.
type made struct {
	ready chan struct{} // holds one token when there may be frames

	mu     sync.Mutex
	frames [][]byte // guarded by mu
}

// put adds a frame behind those that wait. Each answers one frame of the session, which so bounds
// their number.
func (m *made) put(frame []byte) {
	m.mu.Lock()
	m.frames = append(m.frames, frame)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// take returns the oldest frame, or nil.
func (m *made) take() (frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.frames) == 0 {
		return nil
	}
	frame, m.frames[0] = m.frames[0], nil
	m.frames = m.frames[1:]
	return frame
}
