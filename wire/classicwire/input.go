package classicwire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/buffer"
)

const (
	idleRead = 1 << 10  // bytes of the buffer in which the Wire waits for the next message
	bulkRead = 32 << 10 // and for the rest of one
)

// errReadClosed is the error of reading after Close.
var errReadClosed = fmt.Errorf("classicwire: read: %w", net.ErrClosed)

// errNothing reports that no complete message is available without waiting.
var errNothing = errors.New("nothing")

// messageReader splits the bytes of the peer into messages. It belongs to the reading goroutine,
// which also has to wait for frames that the Wire itself makes: so another goroutine reads from the
// connection.
type messageReader struct {
	conn io.Reader // these are fixed
	done <-chan struct{}
	ask  chan []byte      // buffer for the next bytes
	got  chan inputResult // how many have come

	mem      *buffer.Buffer // mem.B[at:end] has arrived and was not returned; nil before the first
	at, end  int
	find     classic.Decoder
	detected bool // find.Codec is that of the peer
	started  bool // the other goroutine runs
	waiting  bool // a read is pending, and owns mem until it is done
	finished error

	received atomic.Uint64 // bytes

	// aside is the memory of a partly received message, in bytes. The reading goroutine writes it.
	aside atomic.Int64
}

// inputResult is the answer to an ask.
type inputResult struct {
	n   int
	err error
}

// next returns the next message, or errNothing if more bytes are needed.
func (in *messageReader) next(limit int) (classic.Message, error) {
	if in.waiting {
		return nil, errNothing
	}
	if !in.detected {
		c, err := classic.Detect(in.unread())
		if err != nil {
			return nil, in.orNothing(err)
		}
		in.find.Codec, in.detected = c, true
	}
	m, n, err := in.find.Next(in.unread(), limit)
	if err != nil {
		return nil, in.orNothing(err)
	}
	in.at += n
	in.aside.Store(0)
	return m, nil
}

// orNothing returns the reason why there is no message: the message is invalid, it is incomplete,
// or the connection has ended.
func (in *messageReader) orNothing(err error) error {
	switch {
	case err != classic.ErrIncomplete:
		return err
	case in.finished == io.EOF && !in.empty():
		return io.ErrUnexpectedEOF
	case in.finished != nil:
		return in.finished
	}
	return errNothing
}

// begins reports whether the unread bytes begin with b.
func (in *messageReader) begins(b string) bool { return bytes.HasPrefix(in.unread(), []byte(b)) }

func (in *messageReader) empty() bool { return !in.waiting && in.at == in.end }

func (in *messageReader) unread() []byte {
	if in.mem == nil {
		return nil
	}
	return in.mem.B[in.at:in.end]
}

// wait returns when more bytes have arrived, or other is ready. The error is that of reading,
// unless there are bytes before it.
func (in *messageReader) wait(other <-chan struct{}) error {
	if !in.started {
		in.started = true
		go in.pump() // ends with Close or the first error of the connection
	}
	if !in.waiting {
		select {
		case in.ask <- in.room():
			in.waiting = true
		case <-in.done:
			return errReadClosed
		}
	}
	select {
	case t := <-in.got:
		in.waiting = false
		in.end += t.n
		in.received.Add(uint64(t.n))
		in.finished = t.err
	case <-other:
	case <-in.done:
		return errReadClosed
	}
	return nil
}

// room returns free memory behind the unread bytes. It grows with the bytes received, not with the
// announced length.
func (in *messageReader) room() []byte {
	unread := in.unread()
	size := idleRead
	if len(unread) > 0 {
		size = bulkRead
	}
	if len(unread) > bulkRead/2 {
		size = 2 * len(unread)
	}
	if in.mem != nil && buffer.Suits(len(in.mem.B), size) {
		copy(in.mem.B, unread)
	} else {
		old := in.mem
		in.mem = buffer.Take(size)
		copy(in.mem.B, unread)
		if old != nil {
			old.Release()
		}
	}
	in.at, in.end = 0, len(unread)
	in.note()
	return in.mem.B[in.end:]
}

// note records how much memory is set aside for a partly received message.
func (in *messageReader) note() {
	held := 0
	if in.end > 0 {
		held = len(in.mem.B)
	}
	in.aside.Store(int64(held))
}

// pump reads on request.
func (in *messageReader) pump() {
	for {
		select {
		case room := <-in.ask:
			t := read(in.conn, room)
			in.got <- t
			if t.err != nil {
				return
			}
		case <-in.done:
			return
		}
	}
}

// read repeats Read until it returns bytes or an error.
func read(r io.Reader, room []byte) (t inputResult) {
	for range 100 { // as bufio.Reader does
		if t.n, t.err = r.Read(room); t.n > 0 || t.err != nil {
			return t
		}
	}
	return inputResult{0, io.ErrNoProgress}
}
