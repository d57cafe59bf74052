package stream

import (
	"context"
	"io"
	"math/bits"
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

const (
	// MaxSize is the largest size, in bytes, that a Writer can have. The peer may take less in one
	// Block: see [pipe.Pipe.MaxBlock].
	MaxSize = 64 << 10

	// DefaultSize is the size, in bytes, of a Writer that is given none. Smaller Blocks cost more
	// each, larger ones hold up what is urgent. The frame of such a Block is one packet of the
	// loopback device, which holds 65,483 bytes of a TCP stream. A Block of 64 KiB would be two
	// packets, at nearly twice the cost.
	DefaultSize = 63 << 10
)

// Writer writes bytes into a pipe. It is for one goroutine at a time.
type Writer struct {
	pipe     *pipe.Pipe
	deadline deadline
	size     int // of a Block, in bytes
	// mem holds what was written and not yet sent, and grows with that. It may be nil if that is
	// nothing.
	mem  *buffer.Buffer
	kept int   // bytes in mem
	err  error // of the first failure, and ErrEnded after Close
}

// NewWriter returns a Writer over p that sends Blocks of [DefaultSize] bytes.
func NewWriter(p *pipe.Pipe) *Writer { return NewWriterSize(p, DefaultSize) }

// NewWriterSize returns a Writer over p that sends Blocks of size bytes. They have at most
// [MaxSize] bytes, and at most [pipe.Pipe.MaxBlock]. A size below 1 means [DefaultSize].
func NewWriterSize(p *pipe.Pipe, size int) *Writer {
	if size < 1 {
		size = DefaultSize
	}
	return &Writer{pipe: p, size: min(size, MaxSize, p.MaxBlock())}
}

// Write copies b, and sends what is enough for a Block. The rest is kept until there is more, or
// until [Writer.Flush]. Write waits as [pipe.Pipe.Send] does, at most until the deadline.
//
// The number of bytes returned with an error says how much was accepted. After an error every
// further call fails with it. Only after a passed deadline another one may be set. When the peer
// has closed its Reader the error is ErrStopped of package codec.
func (w *Writer) Write(b []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	ctx, cancel := w.deadline.context()
	defer cancel()
	for n < len(b) {
		if w.kept == 0 && len(b)-n >= w.size { // a whole Block: no copy is needed here
			k, err := w.send(ctx, b[n:n+w.size])
			if n += k; err != nil {
				return n, err
			}
			continue
		}
		k, err := w.keep(ctx, b[n:])
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// keep keeps as much of b as completes a Block, and sends a complete Block. It returns how much of
// b it has taken.
func (w *Writer) keep(ctx context.Context, b []byte) (int, error) {
	if w.kept == w.size { // a deadline has passed before it could be sent
		if err := w.flush(ctx); err != nil {
			return 0, err
		}
	}
	if w.mem == nil { // no memory is taken for a peer that takes nothing
		if _, err := w.credit(ctx); err != nil {
			return 0, err
		}
	}
	k := min(len(b), w.size-w.kept)
	w.grow(w.kept + k)
	copy(w.mem.B[w.kept:], b[:k])
	w.kept += k
	if w.kept < w.size {
		return k, nil
	}
	return k, w.flush(ctx)
}

// grow makes room for n bytes in all.
func (w *Writer) grow(n int) {
	small := w.mem
	if small != nil && n <= len(small.B) {
		return
	}
	// a power of two, so that little is copied however small the writes are
	w.mem = buffer.Take(1 << bits.Len(uint(n-1)))
	if small != nil {
		copy(w.mem.B, small.B[:w.kept])
		small.Release()
	}
}

// release gives the memory back, with all that is in it.
func (w *Writer) release() {
	if w.mem != nil {
		w.mem.Release()
	}
	w.mem, w.kept = nil, 0
}

// ReadFrom sends what r returns until its end, a Block for each Read, so that nothing is held back
// while r has no more. It returns the number of bytes read, and the first error of either side but
// io.EOF. What a passed deadline has kept from being sent goes out with what is written next.
func (w *Writer) ReadFrom(r io.Reader) (n int64, err error) {
	if err := w.Flush(); err != nil {
		return 0, err
	}
	ctx, cancel := w.deadline.context()
	defer cancel()
	for {
		w.grow(w.size)
		k, readErr := r.Read(w.mem.B[:w.size])
		if k > 0 {
			w.kept = k
			n += int64(k)
			if err := w.flush(ctx); err != nil {
				return n, err
			}
		}
		if readErr != nil {
			w.release()
			if readErr == io.EOF {
				readErr = nil
			}
			return n, readErr
		}
	}
}

// Flush sends what has been kept. It waits as [pipe.Pipe.Send] does, but not until the peer has
// received that.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	ctx, cancel := w.deadline.context()
	defer cancel()
	return w.flush(ctx)
}

// Close flushes and ends this direction: the peer's Reader returns io.EOF after the last byte. The
// call itself goes on. If the peer was content with less and has ended the call well, Close returns
// nil. Repeated calls return the error of the first.
func (w *Writer) Close() error {
	if w.err == pipe.ErrEnded {
		return nil
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w.release()
	if err := w.pipe.CloseSend(); err != nil && err != pipe.ErrClosed {
		w.err = err
		return err
	}
	w.err = pipe.ErrEnded
	return nil
}

// SetWriteDeadline bounds the calls that begin after it. A call that passes it fails with
// os.ErrDeadlineExceeded. The zero time is no bound.
func (w *Writer) SetWriteDeadline(t time.Time) error {
	w.deadline.at = t
	return nil
}

// flush sends what has been kept. If that fills the memory it is in, the memory is given away with
// it, so that nothing is copied.
func (w *Writer) flush(ctx context.Context) error {
	if w.kept == 0 {
		return nil
	}
	fits, err := w.credit(ctx)
	if err != nil {
		return err
	}
	if fits >= w.kept && w.mem.Filled(w.kept) {
		if err = (*piping.End)(w.pipe).Give(ctx, w.mem, w.kept); err == nil {
			w.mem, w.kept = nil, 0
		}
		return w.failed(ctx, err)
	}
	for sent := 0; w.kept > 0; w.kept -= sent {
		if sent, err = w.send(ctx, w.mem.B[:w.kept]); err != nil {
			return err
		}
		copy(w.mem.B, w.mem.B[sent:w.kept])
	}
	return nil
}

// send sends one Block: as much of b as the window admits, so that it has to ask for nothing. It
// returns how much that was. Only a peer whose window never admits a byte by itself is asked: for
// all of b.
func (w *Writer) send(ctx context.Context, b []byte) (int, error) {
	n, err := w.credit(ctx)
	if err != nil {
		return 0, err
	}
	if n = min(n, len(b)); n == 0 {
		n = len(b)
	}
	if err := w.failed(ctx, w.pipe.Send(ctx, b[:n])); err != nil {
		return 0, err
	}
	return n, nil
}

// credit waits until the window admits something, and returns how much.
func (w *Writer) credit(ctx context.Context) (int, error) {
	n, err := w.pipe.AwaitCredit(ctx)
	return n, w.failed(ctx, err)
}

// failed returns err as the caller should see it. Each failure is final but a passed deadline.
func (w *Writer) failed(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		w.err = err
	}
	return explain(ctx, "write", err)
}
