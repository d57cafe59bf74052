package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/wire"
)

// lineWire is a complete Wire over two streams of bytes, one for each direction: named pipes, a
// serial line, the standard input and output of another program.
//
// A Wire has one task: to carry frames. A frame is a sequence of bytes, and must arrive as it was
// sent: whole, once, in order. The content belongs to the session, and so do calls, streams, flow
// control and errors. Five methods suffice. They follow in the order in which they are easiest to
// understand.
//
// A session reads from one goroutine and writes from one goroutine at a time. So there is no lock
// here: one half of the struct belongs to each. Only Close is called from any goroutine, at any
// time, so closed is atomic.
type lineWire struct {
	name     string // for the addresses
	from, to io.Closer
	closed   atomic.Bool // Close was called

	in      *bufio.Reader // these three belong to the goroutine that reads; over from
	frame   []byte        // the last frame, for reuse
	readErr error         // the error of further reads

	out *bufio.Writer // belongs to the goroutine that writes; over to
}

func newLineWire(name string, from io.ReadCloser, to io.WriteCloser) wire.Wire {
	return &lineWire{name: name, from: from, in: bufio.NewReader(from), to: to, out: bufio.NewWriter(to)}
}

// WriteFrames writes each frame behind its length, so that the other end finds the start of the
// next one. (A transport with messages needs no length.)
//
// It may keep no part of the frames when it returns, because the session reuses their memory: bufio
// copies or writes them. It must block while the transport is full, otherwise memory would fill
// with frames that a slow peer has not read. It must not delay any frame: hence the Flush.
func (l *lineWire) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		if uint64(len(f)) > math.MaxUint32 {
			return fmt.Errorf("line: write: %w: %d bytes", wire.ErrFrameTooLarge, len(f))
		}
		// Flush returns an error
		l.out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(f))))
		l.out.Write(f)
	}
	if err := l.out.Flush(); err != nil || l.closed.Load() {
		return l.reason("write", err)
	}
	return nil
}

// ReadFrame waits for the next frame. The slice is valid until the next ReadFrame, so one buffer
// suffices for all frames.
//
// After an error the start of the next frame is unknown. So the error stays, and the session will
// close the Wire.
func (l *lineWire) ReadFrame(max int) ([]byte, error) {
	if l.readErr == nil && !l.closed.Load() {
		if l.readErr = l.next(max); l.readErr == nil {
			return l.frame, nil
		}
	}
	return nil, l.reason("read", l.readErr)
}

// next reads a frame. It distinguishes three cases. When the peer has closed between two frames,
// the error is io.EOF, a graceful end. Inside a frame it is io.ErrUnexpectedEOF: data is lost. A
// frame of more than max bytes is refused by its length alone: a peer that announces 4 GB costs no
// memory.
func (l *lineWire) next(max int) error {
	var length [4]byte
	if _, err := io.ReadFull(l.in, length[:]); err != nil {
		return err // from ReadFull; it is io.EOF only before the first byte
	}
	n := binary.BigEndian.Uint32(length[:])
	if uint64(n) > uint64(max) {
		return fmt.Errorf("%w: %d bytes are announced, %d allowed", wire.ErrFrameTooLarge, n, max)
	}
	if int(n) > cap(l.frame) {
		l.frame = make([]byte, n)
	}
	l.frame = l.frame[:n] // an empty frame is a frame, too
	_, err := io.ReadFull(l.in, l.frame)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // before the first byte of this frame, but behind its length
	}
	return err
}

// reason wraps net.ErrClosed if the Wire was closed on this side: the session checks for it with
// errors.Is, and errors of closed streams differ.
func (l *lineWire) reason(op string, err error) error {
	if l.closed.Load() {
		return fmt.Errorf("line: %s: %w", op, net.ErrClosed)
	}
	if err == io.EOF {
		return err // as it is
	}
	return fmt.Errorf("line: %s: %w", op, err)
}

// Close ends a ReadFrame and a WriteFrames that block: closing the streams does that, provided that
// Close of from ends its Read. Frames that WriteFrames has accepted are still sent, since they were
// flushed. The session may call Close twice; the second time there is nothing to do.
func (l *lineWire) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return errors.Join(l.to.Close(), l.from.Close())
}

// LocalAddr and RemoteAddr are for logs, to identify the failed end, and never nil.
func (l *lineWire) LocalAddr() net.Addr  { return place(l.name) }
func (l *lineWire) RemoteAddr() net.Addr { return place(l.name + " (peer)") }

type place string

func (place) Network() string  { return "line" }
func (p place) String() string { return string(p) }
