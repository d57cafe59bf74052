package classic

// Decoder finds the messages in a stream of bytes, which has no separators between them. It
// remembers its position, so that bytes which arrive one by one cost no more than those that arrive
// together. The zero value is ready, for MessagePack.
type Decoder struct {
	Codec Codec // of the stream. It must not change in the middle of a message

	at      int   // the position in the values; 0: before the first
	pending int64 // number of values that begin there
}

// Next returns the message at the beginning of data and the number of its bytes. The message shares
// memory with data, except for its texts.
//
// If the message is incomplete, the error is ErrIncomplete: call Next again with the same bytes and
// more behind them.
//
// As soon as it is known that the message has more than limit bytes, the error is a *SizeError, and
// for everything that is not a message, a *FormatError; the stream cannot be read any further then.
func (d *Decoder) Next(data []byte, limit int) (m Message, n int, err error) {
	r := itemReader{form: d.Codec.form(), data: data, limit: limit}
	m = d.message(&r)
	if r.err != nil {
		return nil, 0, r.err
	}
	d.at, d.pending = 0, 0
	return m, r.at, nil
}

// Parse is Next of a new Decoder.
func (c Codec) Parse(data []byte, limit int) (m Message, n int, err error) {
	d := Decoder{Codec: c}
	return d.Next(data, limit)
}

// message reads a message. Its result is valid only if the reader has not failed.
func (d *Decoder) message(r *itemReader) Message {
	switch tag := r.tag(); {
	case r.err != nil:
		return nil
	case tag == openTag:
		return d.open(r)
	case tag == closeTag:
		return d.close(r)
	case tag == blockTag:
		return block(r)
	case tag == controlTag:
		return control(r)
	default:
		r.fail(malformed(0, "unexpected message tag %02x", tag))
	}
	return nil
}

func (d *Decoder) open(r *itemReader) Message {
	m := Open{Pipe: uint16(r.count()), Priority: int8(r.integer(1)), Function: uint16(r.count()), Count: uint16(r.count())}
	m.Params = d.values(r, int(m.Count))
	if !done(r, m.Pipe) {
		return nil
	}
	found := m // only complete messages are allocated
	return &found
}

func (d *Decoder) close(r *itemReader) Message {
	m := Close{Pipe: uint16(r.count())}
	switch tag := r.tag(); {
	case r.err != nil:
	case tag == trueTag:
		m.Result = d.values(r, 1)
	case tag == falseTag:
		code, message := int32(r.integer(4)), r.raw()
		if r.err == nil {
			m.Abort = &Abort{Code: code, Message: text(message)}
		}
	default:
		r.fail(malformed(r.at-1, "unexpected boolean %02x", tag))
	}
	if !done(r, m.Pipe) {
		return nil
	}
	found := m
	return &found
}

func block(r *itemReader) Message {
	m := Block{Pipe: uint16(r.count())}
	status := r.integer(1)
	if m.EOF = status == eofStatus; !m.EOF {
		m.Loss = uint8(status) & maxLoss
		m.Payload = r.raw()
	}
	if done(r, m.Pipe) && len(m.Payload) > MaxPayload {
		r.fail(payloadTooLong(len(m.Payload)))
	}
	if r.err != nil {
		return nil
	}
	found := m
	return &found
}

func control(r *itemReader) Message {
	code, data := byte(r.integer(1)), r.raw()
	if !fits(r) {
		return nil
	}
	return &Control{Code: code, Data: data}
}

// done reports whether a message of a pipe was read, and is valid.
func done(r *itemReader, pipe uint16) bool {
	if fits(r) && pipe == 0 {
		r.fail(malformed(1, "pipe id 0, which no message but Control may have"))
	}
	return r.err == nil
}

// fits reports whether a message was read, and is within the limit.
func fits(r *itemReader) bool {
	if r.err == nil && r.at > r.limit {
		r.fail(&SizeError{Size: r.at, Limit: r.limit})
	}
	return r.err == nil
}

// values returns the bytes of the next count values.
func (d *Decoder) values(r *itemReader, count int) []byte {
	if r.err != nil {
		return nil
	}
	begin, all := r.at, r.data
	if d.at == 0 {
		d.at, d.pending = begin, int64(count)
	}
	if seen := d.at - begin; seen <= len(all) {
		r.step(seen, nil)
	} else {
		r.fail(ErrIncomplete)
	}
	d.pending = r.walk(d.pending)
	d.at = r.at
	if r.err != nil {
		return nil
	}
	return all[: r.at-begin : r.at-begin]
}
