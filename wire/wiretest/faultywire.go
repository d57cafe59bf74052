package wiretest

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Wire is one end of a Wire with faults. Beside the five methods it is a [wire.BatchWriter],
// [wire.Buffered] and a [wire.Meter], and has deadlines.
type Wire struct {
	wire.Wire // over conn
	conn      *Conn
}

// Faulty returns w with faults. The result owns w, and has to be closed. One end of a connection is
// enough: Faults has both directions.
//
// This end behaves as one over [FaultyConn] does. The other end gets only whole frames, and so does
// not notice that a frame was truncated or cut: for it the Wire ends before that frame. To test how
// that end reads half a frame, use FaultyConn. No frame may be larger than 16 MiB.
func Faulty(w wire.Wire, f Faults) *Wire {
	conn := FaultyConn(&frameStream{Wire: w}, f)
	return &Wire{wire.FromConn(conn), conn}
}

// Cut loses the Wire; see [Conn.Cut].
func (w *Wire) Cut() { w.conn.Cut() }

// Stall stops both directions until Heal; see [Conn.Stall].
func (w *Wire) Stall() { w.conn.Stall() }

// Heal ends a stall by Stall or [Direction.StallAfter]; see [Conn.Heal].
func (w *Wire) Heal() { w.conn.Heal() }

// HalfOpen silently loses all later bytes; see [Conn.HalfOpen].
func (w *Wire) HalfOpen() { w.conn.HalfOpen() }

// WriteBatch implements wire.BatchWriter.
func (w *Wire) WriteBatch(batch []byte) error { return w.Wire.(wire.BatchWriter).WriteBatch(batch) }

// Buffered implements wire.Buffered.
func (w *Wire) Buffered() bool { return w.Wire.(wire.Buffered).Buffered() }

// Keep implements wire.Buffered.
func (w *Wire) Keep() *transport.Buffer { return w.Wire.(wire.Buffered).Keep() }

// Receiving implements wire.Meter.
func (w *Wire) Receiving() int { return w.Wire.(wire.Meter).Receiving() }

// Progress implements wire.Meter: it returns how many bytes have been read and written. Bytes that
// vanish do not count.
func (w *Wire) Progress() (received, sent uint64) { return w.conn.progress() }

// SetReadDeadline is the method of net.Conn; see [wire.FromConn].
func (w *Wire) SetReadDeadline(t time.Time) error { return w.conn.SetReadDeadline(t) }

// SetWriteDeadline is the method of net.Conn; see [wire.FromConn].
func (w *Wire) SetWriteDeadline(t time.Time) error { return w.conn.SetWriteDeadline(t) }

// largest is the maximum size of a frame. A corrupted length is likely to exceed it, and is
// detected at once.
const largest = 16 << 20

// prefix is the number of bytes before each frame.
const prefix = 4

// frameStream makes a byte stream of a Wire: each frame behind its length.
type frameStream struct {
	wire.Wire

	in  []byte // belongs to the reading goroutine; the rest of the last frame
	out []byte // belongs to the writing goroutine; the received part of the next frame
}

// Read implements io.Reader.
func (s *frameStream) Read(p []byte) (int, error) {
	if len(s.in) == 0 {
		f, err := s.ReadFrame(largest)
		if err != nil {
			return 0, err
		}
		s.in = append(binary.BigEndian.AppendUint32(s.in[:0], uint32(len(f))), f...)
	}
	n := copy(p, s.in)
	s.in = s.in[n:]
	return n, nil
}

// Write implements io.Writer. It writes complete frames, and keeps the rest.
func (s *frameStream) Write(p []byte) (int, error) {
	s.out = append(s.out, p...)
	var frames [][]byte
	rest := s.out
	for len(rest) >= prefix {
		n := int(binary.BigEndian.Uint32(rest))
		if n < 0 || n > largest {
			return 0, fmt.Errorf("wiretest: %w: %d bytes, %d allowed", wire.ErrFrameTooLarge, uint32(n), largest)
		}
		if len(rest) < prefix+n {
			break
		}
		frames = append(frames, rest[prefix:prefix+n])
		rest = rest[prefix+n:]
	}
	if len(frames) > 0 {
		if err := s.WriteFrames(frames); err != nil {
			return 0, err
		}
	}
	s.out = append(s.out[:0], rest...)
	return len(p), nil
}
