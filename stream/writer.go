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
	// MaxSize is the largest Block size, in bytes, of a Writer. The peer may accept less in one
	// Block: see [pipe.Pipe.MaxBlock].
	MaxSize = 64 << 10

	// DefaultSize is the Block size, in bytes, of a Writer without an explicit size. Smaller Blocks
	// cost more each, and larger ones delay urgent messages. The frame of such a Block is one
	// packet of the loopback device, which holds 65,483 bytes of a TCP stream. A Block of 64 KiB
	// would need two packets, at nearly twice the cost.
	DefaultSize = 63 << 10
)

// Writer writes bytes into a pipe. It is for one goroutine at a time.
type Writer struct {
	pipe     *pipe.Pipe
	deadline streamDeadline
	size     int // of a Block, in bytes
	// mem holds the bytes that were written and not yet sent, and grows with them. It may be nil if
	// there are none.
	mem  *buffer.Buffer
	kept int   // bytes in mem
	err  error // the first failure; ErrEnded after Close
}

// NewWriter returns a Writer over p that sends Blocks of [DefaultSize] bytes.
func NewWriter(p *pipe.Pipe) *Writer { return NewWriterSize(p, DefaultSize) }

// NewWriterSize returns a Writer over p that sends Blocks of size bytes, but of no more than
// [MaxSize] and [pipe.Pipe.MaxBlock]. A size below 1 means [DefaultSize].
func NewWriterSize(p *pipe.Pipe, size int) *Writer {
	if size < 1 {
		size = DefaultSize
	}
	return &Writer{pipe: p, size: min(size, MaxSize, p.MaxBlock())}
}

// Write copies b and sends every complete Block. It keeps the rest until more bytes are written, or
// until [Writer.Flush]. Write blocks as [pipe.Pipe.Send] does, at most until the deadline.
//
// With an error, Write returns the number of bytes that it accepted. Every later call fails with
// the same error, except after an exceeded deadline, when a new deadline may be set. When the peer
// has closed its Reader, the error is ErrStopped of package codec.
func (w *Writer) Write(b []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	ctx, cancel := w.deadline.context()
	defer cancel()
	for n < len(b) {
		if w.kept == 0 && len(b)-n >= w.size { // a whole Block, sent without a copy
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

// keep copies as much of b as completes a Block, and sends a complete Block. It returns the number
// of bytes taken from b.
func (w *Writer) keep(ctx context.Context, b []byte) (int, error) {
	if w.kept == w.size { // a deadline has expired before the Block could be sent
		if err := w.flush(ctx); err != nil {
			return 0, err
		}
	}
	if w.mem == nil { // no allocation for a peer that grants no credit
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
	// a power of two, so that small writes cause few copies
	w.mem = buffer.Take(1 << bits.Len(uint(n-1)))
	if small != nil {
		copy(w.mem.B, small.B[:w.kept])
		small.Release()
	}
}

// release releases the memory together with its content.
func (w *Writer) release() {
	if w.mem != nil {
		w.mem.Release()
	}
	w.mem, w.kept = nil, 0
}

// ReadFrom sends the bytes that r returns until its end, one Block for each Read, so that no byte
// waits for more bytes of r. It returns the number of bytes read, and the first error of either
// side but io.EOF. Bytes that an exceeded deadline kept from being sent are sent with the next
// write.
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

// Flush sends the bytes that Write has kept. It blocks as [pipe.Pipe.Send] does, but not until the
// peer has received the bytes.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	ctx, cancel := w.deadline.context()
	defer cancel()
	return w.flush(ctx)
}

// Close flushes, and ends this direction: the peer's Reader returns io.EOF after the last byte. The
// call itself continues. Close returns nil if the peer has ended the call without an error before
// it read all bytes. Repeated calls return the error of the first.
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

// SetWriteDeadline sets the deadline for calls that begin after it. A call that exceeds the
// deadline fails with os.ErrDeadlineExceeded. The zero time means no deadline.
func (w *Writer) SetWriteDeadline(t time.Time) error {
	w.deadline.at = t
	return nil
}

// flush sends the bytes that Write has kept. If they fill their memory, flush hands over the memory
// itself, without a copy.
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

// send sends one Block with as much of b as fits into the window. It returns the number of bytes
// sent. If the peer grants no credit in advance, send sends all of b, and waits.
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

// credit blocks until the window has room, and returns the number of bytes that fit.
func (w *Writer) credit(ctx context.Context) (int, error) {
	n, err := w.pipe.AwaitCredit(ctx)
	return n, w.failed(ctx, err)
}

// failed returns err as the caller sees it. Every error but an exceeded deadline is final.
func (w *Writer) failed(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		w.err = err
	}
	return explain(ctx, "write", err)
}
