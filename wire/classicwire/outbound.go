package classicwire

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
)

// writeSize is how many bytes are gathered for one write, about.
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

// write translates frames and writes what they are for the peer.
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
	case len(b) == 0: // which some conns would wait for, or send
		return nil
	}
	n, err := w.conn.Write(b)
	w.sent.Add(uint64(max(n, 0)))
	if err != nil { // part of a message may have gone
		w.writeErr = fmt.Errorf("classicwire: write: %w", err)
		if w.closed() {
			return errWriteClosed
		}
		return w.writeErr
	}
	w.parted = w.parting
	return nil
}

// outbound appends to dst what a frame of the session is for the peer. An error ends the Wire.
func (w *classicWire) outbound(dst, frame []byte) ([]byte, error) {
	t, err := message.TypeOf(frame)
	if err != nil {
		return dst, err
	}
	switch t {
	case message.OpenType:
		m, err := message.ParseOpen(frame)
		if err != nil {
			return dst, err
		}
		return w.outboundOpen(dst, &m)
	case message.BlockType:
		m, err := message.ParseBlock(frame)
		if err != nil {
			return dst, err
		}
		return w.outboundBlock(dst, &m)
	case message.CloseType:
		m, err := message.ParseClose(frame)
		if err != nil {
			return dst, err
		}
		return w.outboundClose(dst, &m)
	}
	m, err := message.ParseControl(frame)
	if err != nil {
		return dst, err
	}
	return w.outboundControl(dst, m)
}

func (w *classicWire) outboundOpen(dst []byte, m *message.Open) ([]byte, error) {
	count, params, err := classic.SplitParams(m.Params)
	if err != nil {
		w.refuse(m.Pipe, codec.ErrBadParams.Withf("the parameters are not classic values: %v", err))
		return dst, nil
	}
	id, ok, kept := w.pipes.open(m.Pipe)
	if !ok {
		w.refuse(m.Pipe, codec.ErrOverloaded.Withf("all %d pipe ids of this side are in use", MaxPipes))
		return w.probe(dst, w.pipes.short())
	}
	if kept { // or the peer would take this Open for a second one
		if dst, err = (&classic.Close{Pipe: id}).AppendTo(dst); err != nil {
			return dst, err
		}
	}
	o := classic.Open{Pipe: id, Priority: m.Priority, Function: m.Function, Count: count, Params: params}
	return o.AppendTo(dst)
}

// refuse ends, in the name of the peer, a call that was not sent.
func (w *classicWire) refuse(pipe uint64, a *codec.Abort) {
	a.Ran = codec.Refused
	w.made.put((&message.Close{Pipe: pipe, Abort: a}).AppendTo(nil))
}

// probe appends a question to the peer that helps the table, if ask says so.
func (w *classicWire) probe(dst []byte, ask bool) ([]byte, error) {
	if !ask {
		return dst, nil
	}
	return (&classic.Block{Pipe: w.pipes.ask(0, false), EOF: true}).AppendTo(dst)
}

func (w *classicWire) outboundBlock(dst []byte, m *message.Block) ([]byte, error) {
	id, ok := w.pipes.id(m.Pipe)
	switch {
	case !ok:
		return dst, nil // the peer has closed the pipe
	case len(m.Payload) > classic.MaxPayload:
		return w.tooLarge(dst, m)
	}
	b := classic.Block{Pipe: id, Loss: m.Meta.Loss, EOF: m.End, Payload: m.Payload}
	return b.AppendTo(dst)
}

// tooLarge ends the call of a Block that a classic peer would not read, on both sides.
func (w *classicWire) tooLarge(dst []byte, m *message.Block) ([]byte, error) {
	a := codec.ErrTooLarge.Withf("Block of %d bytes exceeds the %d of the classic protocol", len(m.Payload), classic.MaxPayload)
	w.made.put((&message.Close{Pipe: m.Pipe, Abort: a}).AppendTo(nil))
	return w.outboundClose(dst, &message.Close{Pipe: m.Pipe, Abort: a})
}

func (w *classicWire) outboundClose(dst []byte, m *message.Close) ([]byte, error) {
	id, ok, ask := w.pipes.close(m.Pipe)
	if !ok {
		return dst, nil // the peer has closed the pipe, or has never heard of it
	}
	c := classic.Close{Pipe: id}
	if m.Abort != nil {
		c.Abort = classic.AbortOf(m.Abort)
	} else if result, err := classic.ResultOf(m.Result); err != nil {
		c.Abort = classic.AbortOf(codec.ErrBadResult.Withf("the result is not a classic value: %v", err))
	} else {
		c.Result = result
	}
	dst, err := c.AppendTo(dst)
	if err != nil {
		return dst, err
	}
	return w.probe(dst, ask)
}

func (w *classicWire) outboundControl(dst []byte, m message.Control) ([]byte, error) {
	switch m := m.(type) {
	case message.Sync:
		return w.greet(dst, m)
	case message.Ping:
		return (&classic.Block{Pipe: w.pipes.ask(m.N, true), EOF: true}).AppendTo(dst)
	case message.Pong:
		return w.outboundOwed(dst)
	case message.SessionClose:
		return w.outboundGoodbye(dst, m)
	}
	return dst, nil // a classic peer knows nothing of Credit, Stop, Drain and Ack
}

// outboundGoodbye appends the end of the session, and before it the end of each call that the peer
// waits for: the original does not end them by itself.
func (w *classicWire) outboundGoodbye(dst []byte, m message.SessionClose) (_ []byte, err error) {
	why := classic.AbortOf(codec.ErrSessionClosed.Withf("%v: %s", m.Code, m.Message))
	for _, id := range w.pipes.accepted() {
		if dst, err = (&classic.Close{Pipe: id, Abort: why}).AppendTo(dst); err != nil {
			return dst, err
		}
	}
	w.parting = true
	return append(dst, goodbye...), nil
}
