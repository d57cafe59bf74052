package classicwire

import (
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
)

// inbound appends to dst the frame that m is for the session, or nothing if the session has no use
// for it. An error ends the Wire.
func (w *classicWire) inbound(dst []byte, m classic.Message) ([]byte, error) {
	if !w.synced {
		return w.first(dst, m)
	}
	switch m := m.(type) {
	case *classic.Open:
		return w.inboundOpen(dst, m), nil
	case *classic.Block:
		return w.inboundBlock(dst, m), nil
	case *classic.Close:
		return w.inboundClose(dst, m), nil
	case *classic.Control:
		return w.inboundControl(dst, m)
	}
	return dst, nil
}

func (w *classicWire) inboundOpen(dst []byte, m *classic.Open) []byte {
	pipe, ok := w.pipes.accept(m.Pipe)
	if !ok {
		return w.owe(dst, duplicate|uint32(m.Pipe))
	}
	w.in.params = classic.JoinParams(w.in.params[:0], m)
	o := message.Open{Pipe: pipe, Function: m.Function, Priority: m.Priority, Params: w.in.params}
	// every call of this protocol may carry Blocks, and it knows no windows
	o.Meta.Stream, o.Meta.Window = true, message.MaxPipe
	return o.AppendTo(dst)
}

func (w *classicWire) inboundBlock(dst []byte, m *classic.Block) []byte {
	pipe, ok, late := w.pipes.block(m.Pipe, m.EOF)
	switch {
	case late:
		// Blocks cross a Close. The original answers each with a Close, which could hit the next
		// pipe with this id
		return dst
	case !ok:
		return w.owe(dst, uint32(m.Pipe))
	}
	b := message.Block{Pipe: pipe, Payload: m.Payload, End: m.EOF, Meta: message.Meta{Loss: m.Loss}}
	return b.AppendTo(dst)
}

func (w *classicWire) inboundClose(dst []byte, m *classic.Close) []byte {
	pipe, ok := w.pipes.closed(m.Pipe, m.Abort != nil && *m.Abort == threw)
	if !ok {
		return w.inboundAnswer(dst, m.Pipe)
	}
	c := message.Close{Pipe: pipe, Result: m.Result}
	if m.Abort != nil {
		c.Abort = &codec.Abort{Code: classic.Code(m.Abort.Code), Message: m.Abort.Message}
	}
	return c.AppendTo(dst)
}

// threw is how the original answers when a function throws an exception instead of returning a
// future. It then keeps the pipe.
var threw = classic.Abort{Code: classic.Unexpected, Message: "internal error"}

// inboundAnswer is for a Close for a pipe that is not there: it is late, or answers a probe.
func (w *classicWire) inboundAnswer(dst []byte, id uint16) []byte {
	if id != w.pipes.half|probe {
		return dst
	}
	if n, ok := w.pipes.answer(); ok {
		return message.Pong{N: n}.AppendTo(dst)
	}
	return dst
}

func (w *classicWire) inboundControl(dst []byte, m *classic.Control) ([]byte, error) {
	switch m.Code {
	case classic.CloseCode:
		w.part(nil) // the original does not want an answer
		return message.SessionClose{Code: codec.SessionClosed, Message: "the peer closed the session"}.AppendTo(dst), nil
	case classic.SyncCode:
		return dst, violation("a second SyncConfig")
	}
	return dst, violation("the Control code %#02x is unknown", m.Code)
}

// violation returns the error of a peer that breaks the protocol.
func violation(format string, args ...any) error {
	return fmt.Errorf("%w: the peer broke the classic protocol: %s", codec.ErrProtocol, fmt.Sprintf(format, args...))
}
