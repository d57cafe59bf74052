package classicwire

import (
	"errors"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
)

// outbound appends to dst the message for the peer, converted from a frame of the session. An error
// ends the Wire.
func (t *translator) outbound(dst, frame []byte) ([]byte, error) {
	kind, err := message.TypeOf(frame)
	if err != nil {
		return dst, err
	}
	switch kind {
	case message.OpenType:
		m, err := message.ParseOpen(frame)
		if err != nil {
			return dst, err
		}
		return t.outboundOpen(dst, &m)
	case message.BlockType:
		m, err := message.ParseBlock(frame)
		if err != nil {
			return dst, err
		}
		return t.outboundBlock(dst, &m)
	case message.CloseType:
		m, err := message.ParseClose(frame)
		if err != nil {
			return dst, err
		}
		return t.outboundClose(dst, &m)
	}
	m, err := message.ParseControl(frame)
	if err != nil {
		return dst, err
	}
	return t.outboundControl(dst, m)
}

func (t *translator) outboundOpen(dst []byte, m *message.Open) ([]byte, error) {
	count, params, err := t.codec.of().SplitParams(m.Params)
	if err != nil {
		t.refuse(m.Pipe, codec.ErrBadParams.Withf("the parameters are not classic values: %v", err))
		return dst, nil
	}
	id, ok, kept := t.pipes.open(m.Pipe)
	if !ok {
		t.refuse(m.Pipe, codec.ErrOverloaded.Withf("all %d pipe ids of this side are in use", MaxPipes))
		return t.probe(dst, t.pipes.short())
	}
	if kept { // otherwise the peer would take this Open for a second one
		if dst, err = (&classic.Close{Pipe: id}).AppendTo(dst, t.codec.of()); err != nil {
			return dst, err
		}
	}
	o := classic.Open{Pipe: id, Priority: m.Priority, Function: m.Function, Count: count, Params: params}
	b, err := o.AppendTo(dst, t.codec.of())
	if a := oversized(err, "the call"); a != nil {
		t.pipes.cancel(m.Pipe)
		t.refuse(m.Pipe, a)
		return dst, nil
	}
	return b, err
}

// oversized returns the Abort for a message above the limit of classic peers, or nil for another
// err.
func oversized(err error, what string) *codec.Abort {
	var size *classic.SizeError
	if !errors.As(err, &size) {
		return nil
	}
	return codec.ErrTooLarge.Withf("%s is a classic message of %d bytes, and %d is the limit", what, size.Size, size.Limit)
}

// refuse ends an unsent call, as if by the peer.
func (t *translator) refuse(pipe uint64, a *codec.Abort) {
	a.Ran = codec.Refused
	t.generated.put((&message.Close{Pipe: pipe, Abort: a}).AppendTo(nil))
}

// probe appends a probe of the peer for the table, if ask is set.
func (t *translator) probe(dst []byte, ask bool) ([]byte, error) {
	if !ask {
		return dst, nil
	}
	return (&classic.Block{Pipe: t.pipes.ask(0, false), EOF: true}).AppendTo(dst, t.codec.of())
}

func (t *translator) outboundBlock(dst []byte, m *message.Block) ([]byte, error) {
	id, ok := t.pipes.id(m.Pipe)
	switch {
	case !ok:
		return dst, nil // the peer has closed the pipe
	case len(m.Payload) > classic.MaxPayload:
		return t.tooLarge(dst, m)
	}
	b := classic.Block{Pipe: id, Loss: m.Meta.Loss, EOF: m.End, Payload: m.Payload}
	return b.AppendTo(dst, t.codec.of())
}

// tooLarge ends the call of a Block above the limit of classic peers, on both sides.
func (t *translator) tooLarge(dst []byte, m *message.Block) ([]byte, error) {
	a := codec.ErrTooLarge.Withf("Block of %d bytes exceeds the %d of the classic protocol", len(m.Payload), classic.MaxPayload)
	t.generated.put((&message.Close{Pipe: m.Pipe, Abort: a}).AppendTo(nil))
	return t.outboundClose(dst, &message.Close{Pipe: m.Pipe, Abort: a})
}

func (t *translator) outboundClose(dst []byte, m *message.Close) ([]byte, error) {
	id, ok, ask := t.pipes.close(m.Pipe)
	if !ok {
		return dst, nil // the peer has closed the pipe, or has never heard of it
	}
	c := classic.Close{Pipe: id}
	if m.Abort != nil {
		c.Abort = classic.AbortOf(m.Abort)
	} else if result, err := t.codec.of().ResultOf(m.Result); err != nil {
		c.Abort = classic.AbortOf(codec.ErrBadResult.Withf("the result is not a classic value: %v", err))
	} else {
		c.Result = result
	}
	b, err := c.AppendTo(dst, t.codec.of())
	if a := oversized(err, "the result"); a != nil && c.Abort == nil {
		c.Result, c.Abort = nil, classic.AbortOf(a)
		b, err = c.AppendTo(dst, t.codec.of())
	}
	if err != nil {
		return dst, err
	}
	return t.probe(b, ask)
}

func (t *translator) outboundControl(dst []byte, m message.Control) ([]byte, error) {
	switch m := m.(type) {
	case message.Sync:
		return t.greet(dst, m)
	case message.Ping:
		return (&classic.Block{Pipe: t.pipes.ask(m.N, true), EOF: true}).AppendTo(dst, t.codec.of())
	case message.Pong:
		return t.outboundOwed(dst)
	case message.SessionClose:
		return t.outboundGoodbye(dst, m)
	}
	return dst, nil // classic peers have no Credit, Stop, Drain and Ack
}

// outboundGoodbye appends the end of the session, and before it the end of each call that the peer
// waits for: the original implementation would wait for them for ever.
func (t *translator) outboundGoodbye(dst []byte, m message.SessionClose) (_ []byte, err error) {
	why := classic.AbortOf(codec.ErrSessionClosed.Withf("%v: %s", m.Code, m.Message))
	for _, id := range t.pipes.accepted() {
		if dst, err = (&classic.Close{Pipe: id, Abort: why}).AppendTo(dst, t.codec.of()); err != nil {
			return dst, err
		}
	}
	t.parting = true
	return append(dst, goodbye(t.codec.of())...), nil
}
