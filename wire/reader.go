package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/internal/buffer"
)

// chunk is how many bytes are read or written at once; they stay in the processor's cache.
const chunk = 32 << 10

// large is the size, in bytes, from which a frame is read only up to its end, so that it has its
// memory alone, which Keep can transfer to the session.
const large = 8 << 10

// prefix is the number of bytes of the length in front of each frame of a byte stream.
const prefix = 4

// frameReader splits a byte stream into frames. It belongs to the goroutine that reads the Wire.
type frameReader struct {
	src  byteSource
	mem  *buffer.Buffer // the received bytes; nil if there are none
	at   int            // mem.B[at:end] has arrived and was not returned
	end  int
	last int   // bytes of the latest frame and its length; the next one is likely to be similar
	err  error // no bytes are read after it

	received *atomic.Uint64 // bytes
	// memory of a partly received frame, in bytes; written by the reading goroutine
	aside atomic.Int64
}

// byteSource provides the bytes of a reader.
type byteSource interface {
	// fill waits for bytes, at most until need bytes have arrived, and adds them to r. Bytes may be
	// added together with an error.
	fill(r *frameReader, need int) error
}

// frame waits for the next frame.
func (r *frameReader) frame(max int) ([]byte, error) {
	for {
		frame, need, err := r.next(max)
		switch {
		case err != nil:
			return nil, r.fail(err)
		case need == 0:
			return frame, nil
		case r.err == nil:
			before := r.end - r.at
			r.err = r.src.fill(r, need)
			r.received.Add(uint64(r.end - r.at - before))
		case errors.Is(r.err, os.ErrDeadlineExceeded):
			// nothing is lost: the caller may continue with another deadline
			err, r.err = r.err, nil
			return nil, err
		case errors.Is(r.err, io.EOF):
			return nil, r.fail(r.endOfStream())
		default:
			return nil, r.fail(r.err)
		}
	}
}

// next returns the next frame if all of it has arrived. Otherwise need is the number of bytes that
// have to arrive before another call finds more.
func (r *frameReader) next(max int) (frame []byte, need int, err error) {
	unread := r.unread()
	if len(unread) < prefix {
		return nil, prefix, nil
	}
	n := int64(binary.BigEndian.Uint32(unread))
	if n > min(int64(max), math.MaxInt-prefix) {
		return nil, 0, fmt.Errorf("%w: %d bytes are announced, %d allowed%s", ErrFrameTooLarge, n, max, asText(unread))
	}
	need = prefix + int(n)
	if len(unread) < need {
		return nil, need, nil
	}
	r.at += need
	r.last = need
	if r.aside.Load() != 0 {
		r.aside.Store(0)
	}
	return unread[prefix:need:need], 0, nil
}

// asText returns the bytes in place of a frame if they are text: they name another protocol, or are
// the message of a proxy. A longer text is truncated.
func asText(bytes []byte) string {
	const most = 64
	printable := func(b byte) bool { return b >= ' ' && b <= '~' }
	n := 0
	for n < min(len(bytes), most) && printable(bytes[n]) {
		n++
	}
	if n < prefix {
		return ""
	}
	return fmt.Sprintf("; the peer says %q, which is no frame", bytes[:n])
}

// buffered reports whether a whole frame has arrived.
func (r *frameReader) buffered() bool {
	unread := r.unread()
	return len(unread) >= prefix && int64(binary.BigEndian.Uint32(unread)) <= int64(len(unread)-prefix)
}

func (r *frameReader) unread() []byte {
	if r.mem == nil {
		return nil
	}
	return r.mem.B[r.at:r.end]
}

func (r *frameReader) empty() bool { return r.at == r.end }

// fail ends the stream with err and releases the memory. Repeated calls find the same error.
func (r *frameReader) fail(err error) error {
	r.err = err
	r.release()
	return err
}

// endOfStream returns the error for the end of the stream at this position.
func (r *frameReader) endOfStream() error {
	if r.empty() {
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

// release releases the memory, with all its content.
func (r *frameReader) release() {
	if r.mem != nil {
		r.mem.Release()
	}
	r.mem, r.at, r.end = nil, 0, 0
	if r.aside.Load() != 0 {
		r.aside.Store(0)
	}
}

// likely returns a buffer size that suits a frame like the one before.
func (r *frameReader) likely() int { return min(max(r.last, chunk), buffer.Most) }

// room returns free memory for further bytes; need is the size of the frame, including the bytes
// received. With nothing buffered it is in a buffer of about size bytes; otherwise in one of at
// least size bytes. It grows with the received bytes, not with need, which a peer can announce at
// no cost.
func (r *frameReader) room(need, size int) []byte {
	if r.empty() {
		r.at, r.end = 0, 0
		if r.mem == nil || !buffer.Suits(len(r.mem.B), size) {
			r.release()
			r.mem = buffer.Take(size)
		}
		return r.mem.B
	}
	if full := r.end-r.at == len(r.mem.B); full || len(r.mem.B) < size {
		r.move(buffer.Take(max(size, min(need, 2*len(r.mem.B)))))
	} else if r.at > 0 {
		r.end = copy(r.mem.B, r.unread())
		r.at = 0
	}
	return r.mem.B[r.end:]
}

// bound returns the part of room that is to be filled at once. For a large frame, that is its
// missing part. Before a frame begins, it is the size of the previous one, if that was large.
func (r *frameReader) bound(room []byte, need int) []byte {
	frame := need
	if r.empty() {
		frame = r.last
	}
	if missing := frame - len(r.unread()); frame >= large && missing < len(room) {
		return room[:missing]
	}
	return room
}

// keep transfers the memory of the frame that was returned last. It returns nil if the frame shares
// the memory with other frames, or does not fill it.
func (r *frameReader) keep() (mem *buffer.Buffer) {
	if r.last < large || r.at != r.last || r.end != r.at || !r.mem.Filled(r.last) {
		return nil
	}
	mem, r.mem = r.mem, nil
	r.at, r.end = 0, 0
	return mem
}

// shrink reduces the memory to the size that the unread bytes need: a peer that sends half a frame
// and then nothing must not hold a large buffer.
func (r *frameReader) shrink() {
	if n := len(r.unread()); n == 0 {
		r.release()
	} else if !buffer.Suits(len(r.mem.B), n) {
		// with room for more, since the rest may arrive at any moment
		r.move(buffer.Take(1 << bits.Len(uint(n-1))))
	}
}

// note records how much memory is held for a partly received frame, before the reader waits for the
// rest.
func (r *frameReader) note() {
	if r.empty() {
		return
	}
	if held := int64(len(r.mem.B)); held != r.aside.Load() {
		r.aside.Store(held)
	}
}

// move copies the unread bytes to another buffer.
func (r *frameReader) move(to *buffer.Buffer) {
	n := copy(to.B, r.unread())
	r.release()
	r.mem, r.end = to, n
}

// idleRead is the size of the buffer in which a [plainSource] waits.
const idleRead = buffer.Least * 9 / 8

// plainSource reads a stream that can only be waited for in Read, which needs memory meanwhile.
// With nothing buffered it gives Read little memory, whatever the size of earlier frames, because
// the wait may be long. Once a frame has begun, it gives more.
type plainSource struct {
	r    io.Reader
	more bool // the last Read used all the memory it was given
}

func (s *plainSource) fill(r *frameReader, need int) error {
	size := idleRead
	if !r.empty() && (s.more || need > idleRead) {
		size = chunk
	}
	all := r.room(need, size)
	room := r.bound(all, need)
	r.note()
	for range 100 { // as bufio.Reader does
		n, err := s.r.Read(room)
		if n < 0 || n > len(room) {
			return fmt.Errorf("Read of %T returned %d for %d bytes", s.r, n, len(room))
		}
		r.end += n
		s.more = n == len(all)
		if n > 0 || err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
