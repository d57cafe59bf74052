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
	// MaxBlock is the largest Block, in bytes, that a Writer sends.
	MaxBlock = 64 << 10

	// DefaultBlock is the size of the Blocks that a Writer sends unless it is told otherwise.
	// Smaller ones cost more each, larger ones hold up what is urgent. The frame of such a Block is
	// one packet of the loopback device, which holds 65,483 bytes of a TCP stream; a Block of 64
	// KiB would be two, at nearly twice the cost.
	DefaultBlock = 63 << 10
)

// Writer writes bytes into a pipe. It is for one goroutine at a time.
type Writer struct {
	pipe     *pipe.Pipe
	deadline deadline
	size     int
	// holds what was written and not yet sent, and grows with that; it may be nil if that is
	// nothing
	mem  *buffer.Buffer
	kept int   // bytes in mem
	err  error // of the first failure, and ErrEnded after Close
}

// NewWriter returns a Writer over p that sends Blocks of DefaultBlock bytes.
func NewWriter(p *pipe.Pipe) *Writer { return NewWriterSize(p, DefaultBlock) }

// NewWriterSize returns a Writer over p that sends Blocks of size bytes, at most MaxBlock, and no
// more than the peer takes. A size below 1 means DefaultBlock.
func NewWriterSize(p *pipe.Pipe, size int) *Writer {
	if size < 1 {
		size = DefaultBlock
	}
	return &Writer{pipe: p, size: min(size, MaxBlock, p.MaxBlock())}
}

// Write sends b, or keeps it until there is enough for a Block; see Flush. It keeps no part of b
// itself. It waits as [pipe.Pipe.Send] does, at most until the deadline. The number of bytes
// returned with an error says what was accepted; after an error every further call fails with it,
// except that of a deadline, after which another one may be set. When the reader was closed the
// error is ErrStopped of package codec.
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

// keep keeps as much of b as completes a Block, sends that, and returns how much it was.
func (w *Writer) keep(ctx context.Context, b []byte) (int, error) {
	if w.kept == w.size { // a deadline has passed before it could be sent
		if err := w.flush(ctx); err != nil {
			return 0, err
		}
	}
	if w.mem == nil { // it is not taken for a peer that takes nothing
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
	// so that little is copied however small the writes are
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
// io.EOF; what a deadline has kept from being sent goes out with what is written next.
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

// Flush sends what has been kept. It does not wait for the peer.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	ctx, cancel := w.deadline.context()
	defer cancel()
	return w.flush(ctx)
}

// Close flushes and ends this direction: the peer's Reader returns io.EOF after the last byte. The
// call itself goes on; if the peer, content with what it has, has ended it well, there is nothing
// to end. Repeated calls return the error of the first.
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

// SetWriteDeadline bounds the calls that begin after it; zero is no bound. A call that passes it
// fails with os.ErrDeadlineExceeded.
func (w *Writer) SetWriteDeadline(t time.Time) error {
	w.deadline.at = t
	return nil
}

// flush sends what has been kept, with the memory it is in if it fills that.
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

// send sends one Block: as much of b as the window admits, so that it has to ask for nothing. Only
// a peer that keeps less than one byte ready is asked, for all of b.
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

// failed returns err as the caller should see it. A failure is final, but for a deadline.
func (w *Writer) failed(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		w.err = err
	}
	return explain(ctx, "write", err)
}
