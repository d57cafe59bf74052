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
	"github.com/asterisque-go/asterisque/wire/transport"
)

// classicWire is the Wire that translates.
type classicWire struct {
	conn          io.ReadWriteCloser // these are fixed
	local, remote net.Addr

	once sync.Once     // these lock themselves
	done chan struct{} // closed by Close
	sent atomic.Uint64 // bytes

	translator
	in    messageReader // belongs to the reading goroutine, as frame
	frame []byte        // the last result of ReadFrame

	writing  sync.Mutex // the goroutine that writes conn holds it
	writeErr error      // guarded by writing, as parted; the error of further writes
	parted   bool       // the end of the session has been written
}

func newClassicWire(c io.ReadWriteCloser, server bool) *classicWire {
	w := &classicWire{conn: c, done: make(chan struct{})}
	w.translator.init(server)
	w.in = messageReader{conn: c, done: w.done, ask: make(chan []byte), got: make(chan inputResult, 1)}
	w.local, w.remote = transport.Addrs(c, "classic")
	return w
}

func (w *classicWire) closed() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// ReadFrame implements wire.Wire. Beside the errors of every Wire, it returns those of a peer that
// breaks the classic protocol. They wrap codec.ErrProtocol; in the handshake they are a
// *codec.Abort.
func (w *classicWire) ReadFrame(max int) ([]byte, error) {
	w.rest()
	for {
		if w.closed() {
			return nil, errReadClosed
		}
		if frame := w.generated.take(); frame != nil {
			return frame, nil
		}
		m, err := w.next(min(max, classic.MaxMessage))
		if err == errNothing {
			err = w.in.wait(w.generated.ready)
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

// next returns the next message of the peer, or errNothing. A message in another codec than that of
// the connection is an error.
func (w *classicWire) next(limit int) (classic.Message, error) {
	m, err := w.in.next(limit)
	if !w.synced && w.in.detected && !w.codec.is(w.in.find.Codec) {
		return nil, w.otherCodec(w.in.find.Codec)
	}
	return m, err
}

// rest releases the memory of a large frame, and of large parameters, that the session no longer
// needs: the next frame may be long in coming.
func (w *classicWire) rest() {
	if cap(w.frame) > idleRead && w.in.empty() {
		w.frame = nil
	}
	if cap(w.params) > idleRead && w.in.empty() {
		w.params = nil
	}
}

// Progress implements wire.Meter.
func (w *classicWire) Progress() (received, sent uint64) { return w.in.received.Load(), w.sent.Load() }

// Receiving implements wire.Meter.
func (w *classicWire) Receiving() int { return int(w.in.aside.Load()) }

// readError returns the error for the session.
func (w *classicWire) readError(err error) error {
	var abort *codec.Abort
	var long *classic.SizeError
	switch {
	case w.closed():
		return errReadClosed // instead of the error of a closed conn
	case err == io.EOF:
		w.part(nil) // the peer is gone: send no farewell
		return io.EOF
	case !w.synced && (errors.Is(err, codec.ErrProtocol) || errors.Is(err, codec.ErrTooLarge)):
		return w.stranger(err, w.in.begins)
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

// Close implements wire.Wire. If the session ends without a final message, Close sends one, so that
// the original does not reconnect.
func (w *classicWire) Close() (err error) {
	w.once.Do(func() {
		close(w.done)
		defer time.AfterFunc(farewellTime, w.cut).Stop()
		// the writer completes a message, unless the peer does not read
		w.writing.Lock()
		w.sayFarewell()
		w.writing.Unlock()
		if e := w.conn.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
			// cut may have closed it before
			err = fmt.Errorf("classicwire: close: %w", e)
		}
	})
	return err
}

// farewellTime limits how long Close waits for a peer that does not read.
const farewellTime = 100 * time.Millisecond

// cut closes the connection without blocking.
func (w *classicWire) cut() {
	if t, ok := w.conn.(*tls.Conn); ok { // Close of a tls.Conn blocks
		t.NetConn().Close()
		return
	}
	w.conn.Close()
}

// sayFarewell is called with writing held.
func (w *classicWire) sayFarewell() {
	words := w.parts()
	if words != nil && !w.parted && w.writeErr == nil {
		w.conn.Write(words) // the connection is closed anyway
	}
}

// LocalAddr implements wire.Wire.
func (w *classicWire) LocalAddr() net.Addr { return w.local }

// RemoteAddr implements wire.Wire.
func (w *classicWire) RemoteAddr() net.Addr { return w.remote }
