package classicwire

import (
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
)

// inbound appends to dst the frame for the session, converted from m, or nothing if the session
// does not need it. An error ends the Wire.
func (t *translator) inbound(dst []byte, m classic.Message) ([]byte, error) {
	if !t.synced {
		return t.first(dst, m)
	}
	switch m := m.(type) {
	case *classic.Open:
		return t.inboundOpen(dst, m), nil
	case *classic.Block:
		return t.inboundBlock(dst, m), nil
	case *classic.Close:
		return t.inboundClose(dst, m), nil
	case *classic.Control:
		return t.inboundControl(dst, m)
	}
	return dst, nil
}

func (t *translator) inboundOpen(dst []byte, m *classic.Open) []byte {
	pipe, ok := t.pipes.accept(m.Pipe)
	if !ok {
		return t.owe(dst, duplicate|uint32(m.Pipe))
	}
	t.params = t.codec.of().JoinParams(t.params[:0], m)
	o := message.Open{Pipe: pipe, Function: m.Function, Priority: m.Priority, Params: t.params}
	// every classic call may carry Blocks, and there are no windows
	o.Meta.Stream, o.Meta.Window = true, message.MaxPipe
	return o.AppendTo(dst)
}

func (t *translator) inboundBlock(dst []byte, m *classic.Block) []byte {
	pipe, ok, late := t.pipes.block(m.Pipe, m.EOF)
	switch {
	case late:
		// Blocks cross a Close. The original answers each with a Close, which could hit the next
		// pipe with this id
		return dst
	case !ok:
		return t.owe(dst, uint32(m.Pipe))
	}
	b := message.Block{Pipe: pipe, Payload: m.Payload, End: m.EOF, Meta: message.Meta{Loss: m.Loss}}
	return b.AppendTo(dst)
}

func (t *translator) inboundClose(dst []byte, m *classic.Close) []byte {
	pipe, ok := t.pipes.closed(m.Pipe, m.Abort != nil && *m.Abort == threw)
	if !ok {
		return t.inboundAnswer(dst, m.Pipe)
	}
	c := message.Close{Pipe: pipe, Result: m.Result}
	if m.Abort != nil {
		c.Abort = &codec.Abort{Code: classic.Code(m.Abort.Code), Message: m.Abort.Message}
	}
	return c.AppendTo(dst)
}

// threw is the answer of the original to a function that throws an exception instead of returning a
// future. The original then keeps the pipe.
var threw = classic.Abort{Code: classic.Unexpected, Message: "internal error"}

// inboundAnswer handles a Close for an unknown pipe: it is late, or answers a probe.
func (t *translator) inboundAnswer(dst []byte, id uint16) []byte {
	if id != t.pipes.half|probe {
		return dst
	}
	if n, ok := t.pipes.answer(); ok {
		return message.Pong{N: n}.AppendTo(dst)
	}
	return dst
}

func (t *translator) inboundControl(dst []byte, m *classic.Control) ([]byte, error) {
	switch m.Code {
	case classic.CloseCode:
		t.part(nil) // the original expects no answer
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
