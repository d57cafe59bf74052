package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"

	"github.com/asterisque-go/asterisque/internal/buffer"
)

// writer is what writing to a byte stream needs. It belongs to whoever writes the Wire at the time.
type writer struct {
	err  error     // why nothing can be written any more
	pair [2][]byte // backs vec
	vec  net.Buffers
	cut  [][]byte // backs vec too, where it is a portion
}

// WriteFrames implements Wire. Small frames share a write, for which they are copied; large ones
// are lent.
func (s *streamWire) WriteFrames(frames [][]byte) error {
	if err := s.writable(); err != nil {
		return err
	}
	mem := buffer.Take(chunk)
	defer mem.Release()
	out := mem.B[:0]
	for _, f := range frames {
		if uint64(len(f)) > math.MaxUint32 {
			return s.writeFailed(fmt.Errorf("%w: %d bytes do not fit a length of %d bytes", ErrFrameTooLarge, len(f), prefix))
		}
		out = binary.BigEndian.AppendUint32(out, uint32(len(f)))
		if len(f) <= len(mem.B)-len(out)-prefix { // always leave room for the next length
			out = append(out, f...)
			continue
		}
		if err := s.writeBoth(out, f); err != nil {
			return err
		}
		out = out[:0]
	}
	return s.write(out)
}

// WriteBatch implements BatchWriter.
func (s *streamWire) WriteBatch(batch []byte) error {
	if err := s.writable(); err != nil {
		return err
	}
	return s.write(batch)
}

// writeVector writes all of pieces, with a system call for each portion where that is possible.
func (s *streamWire) writeVector(pieces [][]byte) error {
	if err := s.writable(); err != nil {
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
			s.out.vec = pieces
		} else {
			s.out.vec, pieces = cut(s.out.cut[:0], pieces, want)
			s.out.cut = s.out.vec
		}
		n, err := s.out.vec.WriteTo(s.conn) // which clears what it has written
		s.out.vec = nil
		if err := s.wrote(n, err, want); err != nil {
			return err
		}
	}
	return nil
}

// cut appends the first n bytes of pieces to dst, and returns what is left of them.
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

// write writes all of b, in portions, so that progress shows.
func (s *streamWire) write(b []byte) error {
	for len(b) > 0 { // some conns would wait for an empty write, or send it
		piece := b[:portion(len(b))]
		n, err := s.conn.Write(piece)
		if err := s.wrote(int64(n), err, len(piece)); err != nil {
			return err
		}
		b = b[len(piece):]
	}
	return nil
}

// most is how many bytes are written at once. They are one packet of the loopback device: with a
// congestion control that sets the pace of packets, bbr for one, a write of a packet and a bit
// takes half as long again as two of half a packet.
const most = 64<<10 - 128

// portion returns how many of n bytes, at least one, are to be written next: all if they are no
// more than most, and else an even share.
func portion(n int) int {
	writes := (n + most - 1) / most
	return (n + writes - 1) / writes
}

// writeBoth writes all of a and b, with one system call where that is possible.
func (s *streamWire) writeBoth(a, b []byte) error {
	s.out.pair = [2][]byte{a, b}
	s.out.vec = s.out.pair[:]
	n, err := s.out.vec.WriteTo(s.conn)
	s.out.pair, s.out.vec = [2][]byte{}, nil
	return s.wrote(n, err, len(a)+len(b))
}

// wrote judges a write of n out of want bytes.
func (s *streamWire) wrote(n int64, err error, want int) error {
	s.sent.Add(uint64(max(n, 0)))
	if err == nil && n < int64(want) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return s.writeFailed(err)
	}
	return nil
}

// writable returns why nothing can be written, or nil.
func (s *streamWire) writable() error {
	if s.closed.Load() {
		return errWriteClosed
	}
	return s.out.err
}

var errWriteClosed = fmt.Errorf("wire: write: %w", net.ErrClosed)

// writeFailed ends writing: the peer may have got part of a frame.
func (s *streamWire) writeFailed(err error) error {
	if s.closed.Load() {
		return errWriteClosed // whatever a closed conn says
	}
	s.out.err = fmt.Errorf("wire: write: %w", err)
	return s.out.err
}
