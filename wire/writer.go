package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// frameWriter writes frames to a byte stream. It belongs to the goroutine that writes the Wire at
// the time. Any goroutine may read sent.
type frameWriter struct {
	conn   io.Writer    // fixed, as closed
	closed *atomic.Bool // the Wire was closed on this side

	sent atomic.Uint64 // bytes

	err  error     // the error of further writes
	pair [2][]byte // backs vec
	vec  net.Buffers
	cut  [][]byte // also backs vec for a portion
}

// frames writes whole frames. Small ones share a write, for which it copies them; large ones are
// lent to the stream.
func (w *frameWriter) frames(frames [][]byte) error {
	if err := w.writable(); err != nil {
		return err
	}
	mem := buffer.Take(chunk)
	defer mem.Release()
	out := mem.B[:0]
	for _, f := range frames {
		if uint64(len(f)) > math.MaxUint32 {
			return w.failed(fmt.Errorf("%w: %d bytes do not fit a length of %d bytes", ErrFrameTooLarge, len(f), prefix))
		}
		out = binary.BigEndian.AppendUint32(out, uint32(len(f)))
		if len(f) <= len(mem.B)-len(out)-prefix { // always leave room for the next length
			out = append(out, f...)
			continue
		}
		if err := w.both(out, f); err != nil {
			return err
		}
		out = out[:0]
	}
	return w.write(out)
}

// batch writes frames with their lengths.
func (w *frameWriter) batch(batch []byte) error {
	if err := w.writable(); err != nil {
		return err
	}
	return w.write(batch)
}

// vector writes all of pieces, with one system call for each portion if possible.
func (w *frameWriter) vector(pieces [][]byte) error {
	if err := w.writable(); err != nil {
		return err
	}
	left := 0
	for _, p := range pieces {
		left += len(p)
	}
	for left > 0 {
		want := portion(left)
		left -= want
		if left == 0 {
			w.vec = pieces
		} else {
			w.vec, pieces = cut(w.cut[:0], pieces, want)
			w.cut = w.vec
		}
		n, err := w.vec.WriteTo(w.conn) // WriteTo clears the written part
		w.vec = nil
		if err := w.wrote(n, err, want); err != nil {
			return err
		}
	}
	return nil
}

// cut appends the first n bytes of pieces to dst, and returns the rest of pieces.
func cut(dst, pieces [][]byte, n int) (first, rest [][]byte) {
	for n > 0 {
		k := min(n, len(pieces[0]))
		dst = append(dst, pieces[0][:k])
		if n -= k; k < len(pieces[0]) {
			pieces[0] = pieces[0][k:]
		} else {
			pieces = pieces[1:]
		}
	}
	return dst, pieces
}

// write writes all of b, in portions, so that progress is visible.
func (w *frameWriter) write(b []byte) error {
	for len(b) > 0 { // some conns would wait for an empty write, or send it
		piece := b[:portion(len(b))]
		n, err := w.conn.Write(piece)
		if err := w.wrote(int64(n), err, len(piece)); err != nil {
			return err
		}
		b = b[len(piece):]
	}
	return nil
}

// most is the maximum number of bytes of one write. They are one packet of the loopback device:
// with a congestion control that paces packets, such as bbr, a write of slightly more than a packet
// takes half as long again as two of half a packet.
const most = 64<<10 - 128

// portion returns how many of n bytes, at least one, are to be written next: all if they are at
// most most, and else an even share.
func portion(n int) int {
	writes := (n + most - 1) / most
	return (n + writes - 1) / writes
}

// both writes all of a and b, with one system call if possible.
func (w *frameWriter) both(a, b []byte) error {
	w.pair = [2][]byte{a, b}
	w.vec = w.pair[:]
	n, err := w.vec.WriteTo(w.conn)
	w.pair, w.vec = [2][]byte{}, nil
	return w.wrote(n, err, len(a)+len(b))
}

// wrote handles the result of a write of n out of want bytes.
func (w *frameWriter) wrote(n int64, err error, want int) error {
	w.count(max(n, 0))
	if err == nil && n < int64(want) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return w.failed(err)
	}
	return nil
}

// boundFrom is how many bytes are sent before the unsent bytes in the kernel are bounded:
// connections that carry less save the system call.
const boundFrom = 16 << 10

// count counts n bytes that were sent.
func (w *frameWriter) count(n int64) {
	if sent := w.sent.Add(uint64(n)); sent > boundFrom && sent-uint64(n) <= boundFrom {
		if c, ok := w.conn.(net.Conn); ok {
			transport.BoundUnsent(c)
		}
	}
}

// writable returns the error of further writes, or nil.
func (w *frameWriter) writable() error {
	if w.closed.Load() {
		return errWriteClosed
	}
	return w.err
}

var errWriteClosed = fmt.Errorf("wire: write: %w", net.ErrClosed)

// failed ends writing: the peer may have got part of a frame.
func (w *frameWriter) failed(err error) error {
	if w.closed.Load() {
		return errWriteClosed // instead of the error of a closed conn
	}
	w.err = fmt.Errorf("wire: write: %w", err)
	return w.err
}
