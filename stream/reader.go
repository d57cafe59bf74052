package stream

import (
	"context"
	"io"
	"time"

	"github.com/asterisque-go/asterisque/pipe"
)

// Reader reads the bytes of a pipe. It is for one goroutine at a time.
type Reader struct {
	pipe     *pipe.Pipe
	deadline streamDeadline
	block    pipe.Block // received last
	rest     []byte     // unread part of its payload
}

// NewReader returns a Reader over p.
func NewReader(p *pipe.Pipe) *Reader { return &Reader{pipe: p} }

// Read blocks until bytes arrive and returns those of at most one Block. After the last byte it
// returns io.EOF. The other errors are those of [pipe.Pipe.Recv], and os.ErrDeadlineExceeded, after
// which a new deadline may be set.
func (r *Reader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	ctx, cancel := r.deadline.context()
	defer cancel()
	if err := r.fill(ctx); err != nil {
		return 0, err
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// WriteTo writes the received bytes to w, with one Write for each Block, until the end of the
// stream. It returns the number of bytes written, and the first error of either side but io.EOF.
func (r *Reader) WriteTo(w io.Writer) (n int64, err error) {
	ctx, cancel := r.deadline.context()
	defer cancel()
	for {
		if err := r.fill(ctx); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		k, err := w.Write(r.rest)
		n += int64(k)
		r.rest = r.rest[k:]
		if err != nil {
			return n, err
		}
		if len(r.rest) > 0 {
			return n, io.ErrShortWrite
		}
	}
}

// Close rejects further bytes. Bytes that wait are discarded, and the peer's next Write fails with
// ErrStopped of package codec. The call itself continues.
func (r *Reader) Close() error {
	r.rest = nil
	r.pipe.Stop()
	return nil
}

// SetReadDeadline sets the deadline for calls that begin after it. A call that exceeds the deadline
// fails with os.ErrDeadlineExceeded. The zero time means no deadline.
func (r *Reader) SetReadDeadline(t time.Time) error {
	r.deadline.at = t
	return nil
}

// fill waits until rest has bytes.
func (r *Reader) fill(ctx context.Context) error {
	for len(r.rest) == 0 {
		r.block.Release()
		b, err := r.pipe.Recv(ctx)
		r.block, r.rest = b, b.Payload
		if err != nil {
			return explain(ctx, "read", err)
		}
	}
	return nil
}
