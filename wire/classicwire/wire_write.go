package classicwire

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net"

	"github.com/asterisque-go/asterisque/internal/buffer"
)

// errWriteClosed is the error of writing after Close.
var errWriteClosed = fmt.Errorf("classicwire: write: %w", net.ErrClosed)

// writeSize is about how many bytes are gathered for one write.
const writeSize = 32 << 10

// WriteBatch implements wire.BatchWriter.
func (w *classicWire) WriteBatch(batch []byte) error {
	return w.write(func(yield func([]byte) bool) {
		for len(batch) > 0 {
			n := 4 + binary.BigEndian.Uint32(batch)
			if !yield(batch[4:n]) {
				return
			}
			batch = batch[n:]
		}
	})
}

// write translates frames for the peer, and writes them.
func (w *classicWire) write(frames iter.Seq[[]byte]) (err error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	mem := buffer.Take(writeSize)
	defer mem.Release()
	out := mem.B[:0]
	for f := range frames {
		if out, err = w.outbound(out, f); err != nil {
			return err
		}
		if len(out) >= writeSize {
			if err := w.send(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	return w.send(out)
}

// send writes all of b. It is called with writing held.
func (w *classicWire) send(b []byte) error {
	switch {
	case w.closed():
		return errWriteClosed
	case w.writeErr != nil:
		return w.writeErr
	case len(b) == 0: // some conns would block for it, or send it
		return nil
	}
	n, err := w.conn.Write(b)
	w.sent.Add(uint64(max(n, 0)))
	if err != nil { // part of a message may have been sent
		w.writeErr = fmt.Errorf("classicwire: write: %w", err)
		if w.closed() {
			return errWriteClosed
		}
		return w.writeErr
	}
	w.parted = w.parting
	return nil
}
