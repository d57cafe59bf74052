package classic

import "encoding/binary"

// Decoder finds the messages in a stream of bytes, which has no marks between them. It remembers
// how far it has looked, so that bytes which arrive one by one cost no more than those that arrive
// together. The zero value is ready.
type Decoder struct {
	at      int   // the first byte that was not looked at; 0: nothing was
	pending int64 // values that begin there, one behind the other
}

// Next returns the message at the beginning of data and the number of its bytes. What it returns
// shares memory with data, but for texts.
//
// If the message goes on beyond data, the error is ErrIncomplete: call Next again with the same
// bytes and more behind them. As soon as it is clear that the message has more than limit bytes,
// the error is a *SizeError, and for everything that is not a message, a *FormatError; the stream
// cannot be read any further then.
func (d *Decoder) Next(data []byte, limit int) (m Message, n int, err error) {
	n, err = d.size(data, limit)
	if err != nil {
		return nil, 0, err
	}
	*d = Decoder{}
	m, err = parse(data[:n:n])
	if err != nil {
		return nil, 0, err
	}
	return m, n, nil
}

// Parse is Next of a new Decoder.
func Parse(data []byte, limit int) (m Message, n int, err error) {
	return new(Decoder).Next(data, limit)
}

// size returns how many bytes the message at the beginning of data has.
func (d *Decoder) size(data []byte, limit int) (int, error) {
	if len(data) == 0 {
		return 0, ErrIncomplete
	}
	switch data[0] {
	case openTag:
		if d.at == 0 && len(data) >= 8 {
			d.at, d.pending = 8, int64(binary.BigEndian.Uint16(data[6:]))
		}
		return d.values(data, limit)
	case closeTag:
		return d.close(data, limit)
	case blockTag:
		if len(data) >= 4 && data[3] == eofStatus {
			return whole(data, 4, limit)
		}
		return counted(data, 4, limit)
	case controlTag:
		return counted(data, 2, limit)
	}
	return 0, malformed(0, "unexpected message tag %02x", data[0])
}

// close returns the size of a Close.
func (d *Decoder) close(data []byte, limit int) (int, error) {
	switch {
	case len(data) < 4:
		return 0, ErrIncomplete
	case data[3] == falseTag:
		return counted(data, 8, limit)
	case data[3] != trueTag:
		return 0, malformed(3, "unexpected boolean %02x", data[3])
	case d.at == 0:
		d.at, d.pending = 4, 1
	}
	return d.values(data, limit)
}

// values returns where the last of the pending values ends.
func (d *Decoder) values(data []byte, limit int) (n int, err error) {
	if d.at == 0 {
		return 0, ErrIncomplete
	}
	if d.at, d.pending, err = walk(data, d.at, d.pending, limit); err != nil {
		return 0, err
	}
	return whole(data, d.at, limit)
}

// counted returns the size of a message that ends with a length at byte at and as many bytes.
func counted(data []byte, at, limit int) (int, error) {
	if len(data) < at+2 {
		return 0, ErrIncomplete
	}
	return whole(data, at+2+int(binary.BigEndian.Uint16(data[at:])), limit)
}

// whole returns n if data has that many bytes.
func whole(data []byte, n, limit int) (int, error) {
	switch {
	case n > limit:
		return 0, &SizeError{Size: n, Limit: limit}
	case len(data) < n:
		return 0, ErrIncomplete
	}
	return n, nil
}

// parse makes a message of its bytes, whose size is known.
func parse(b []byte) (Message, error) {
	if b[0] == controlTag {
		return &Control{Code: b[1], Data: b[4:]}, nil
	}
	pipe := binary.BigEndian.Uint16(b[1:])
	if pipe == 0 {
		return nil, malformed(1, "pipe id 0, which no message but Control may have")
	}
	switch {
	case b[0] == openTag:
		return &Open{
			Pipe: pipe, Priority: int8(b[3]), Function: binary.BigEndian.Uint16(b[4:]), Count: binary.BigEndian.Uint16(b[6:]), Params: b[8:],
		}, nil
	case b[0] == closeTag && b[3] == trueTag:
		return &Close{Pipe: pipe, Result: b[4:]}, nil
	case b[0] == closeTag:
		return &Close{Pipe: pipe, Abort: &Abort{Code: int32(binary.BigEndian.Uint32(b[4:])), Message: text(b[10:])}}, nil
	case b[3] == eofStatus:
		return &Block{Pipe: pipe, EOF: true}, nil
	case len(b)-6 > MaxPayload:
		return nil, payloadTooLong(len(b) - 6)
	}
	return &Block{Pipe: pipe, Loss: b[3] &^ eofStatus, Payload: b[6:]}, nil
}
