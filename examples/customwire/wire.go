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
// A Wire has one task: to carry frames. A frame is some bytes, and must come out as it went in:
// whole, once, in order. What is in it is the session's business, and so are calls, streams, flow
// control and errors. Five methods do, and they follow in the order in which they are easiest to
// understand.
//
// A session reads from one goroutine and writes from one goroutine at a time. So there is no lock
// here: one half of the struct belongs to each. Only Close comes from anywhere, at any time, and so
// closed is atomic.
type lineWire struct {
	name     string // for the addresses
	from, to io.Closer
	closed   atomic.Bool // Close was called

	in      *bufio.Reader // these three belong to the goroutine that reads; over from
	frame   []byte        // what ReadFrame has returned, and may use again
	readErr error         // why nothing more can be read

	out *bufio.Writer // belongs to the goroutine that writes; over to
}

func newLineWire(name string, from io.ReadCloser, to io.WriteCloser) wire.Wire {
	return &lineWire{name: name, from: from, in: bufio.NewReader(from), to: to, out: bufio.NewWriter(to)}
}

// WriteFrames writes each frame behind its length, so that the other end finds where the next
// begins. (A transport that has messages needs no length.)
//
// It may keep no part of the frames when it returns, for the session uses their memory again: bufio
// copies or writes them. It must wait while the transport is full, or else memory would fill with
// what a slow peer has not read. And it must not hold anything back for a better moment: hence the
// Flush.
func (l *lineWire) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		if uint64(len(f)) > math.MaxUint32 {
			return fmt.Errorf("line: write: %w: %d bytes", wire.ErrFrameTooLarge, len(f))
		}
		// an error comes back from Flush
		l.out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(f))))
		l.out.Write(f)
	}
	if err := l.out.Flush(); err != nil || l.closed.Load() {
		return l.reason("write", err)
	}
	return nil
}

// ReadFrame waits for the next frame. The slice is valid until the next ReadFrame, so one piece of
// memory will do for all frames.
//
// After an error there is no way to tell where the next frame begins. So the error stays, and the
// session will close the Wire.
func (l *lineWire) ReadFrame(max int) ([]byte, error) {
	if l.readErr == nil && !l.closed.Load() {
		if l.readErr = l.next(max); l.readErr == nil {
			return l.frame, nil
		}
	}
	return nil, l.reason("read", l.readErr)
}

// next reads a frame. Three things are to be told apart. When the peer has closed between two
// frames, that is io.EOF, a good end. In the middle of one it is io.ErrUnexpectedEOF: something is
// lost. And a frame of more than max bytes is refused by its length alone: a peer that announces 4
// GB costs no memory.
func (l *lineWire) next(max int) error {
	var length [4]byte
	if _, err := io.ReadFull(l.in, length[:]); err != nil {
		return err // of ReadFull, which is io.EOF only before the first byte
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

// reason says that the Wire was closed on this side, if so: whatever error a closed stream has, the
// session asks with errors.Is for net.ErrClosed.
func (l *lineWire) reason(op string, err error) error {
	if l.closed.Load() {
		return fmt.Errorf("line: %s: %w", op, net.ErrClosed)
	}
	if err == io.EOF {
		return err // as it is
	}
	return fmt.Errorf("line: %s: %w", op, err)
}

// Close ends a ReadFrame and a WriteFrames that wait: closing the streams does that, which is why
// from must be one whose Close ends its Read. What WriteFrames has accepted still goes out, since
// it was flushed. The session may call Close twice; the second time there is nothing to do.
func (l *lineWire) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return errors.Join(l.to.Close(), l.from.Close())
}

// LocalAddr and RemoteAddr are for logs, and never nil: people want to know who failed.
func (l *lineWire) LocalAddr() net.Addr  { return place(l.name) }
func (l *lineWire) RemoteAddr() net.Addr { return place(l.name + " (peer)") }

type place string

func (place) Network() string  { return "line" }
func (p place) String() string { return string(p) }
