package classic

// Limits of the format.
const (
	MaxMessage = 65507 // maximum bytes of a sent message
	MaxPayload = 61439 // bytes of a Block's payload
	MaxString  = 65535 // bytes of a string or a binary
	MaxCount   = 65535 // elements of a list, entries of a map, parameters of an Open
	MaxFields  = 255   // of a struct
)

// Tags of messages: the first byte of each.
const (
	openTag    = '('
	closeTag   = ')'
	blockTag   = '#'
	controlTag = '*'
)

// Codes of a Control.
const (
	SyncCode  = 'Q' // its data is a Sync
	CloseCode = 'C' // ends the session
)

// eofStatus is the status, signed, of a Block that ends its direction.
const eofStatus = -0x80

// Message is one of Open, Block, Close and Control.
type Message interface {
	// AppendTo appends the bytes of the message, by codec c, to dst and returns the longer slice;
	// after an error, dst as it was. It keeps no part of the message. The error is a *FormatError
	// for a message that the format cannot encode, and a *SizeError for one of more than MaxMessage
	// bytes.
	AppendTo(dst []byte, c Codec) ([]byte, error)
}

// Open requests that the peer runs a function: it starts a pipe.
type Open struct {
	Pipe     uint16 // not 0
	Priority int8
	Function uint16
	Count    uint16 // of parameters
	Params   []byte // Count encoded values, one behind the other
}

// Block carries one piece of the stream that runs in one direction of a pipe, or ends that stream.
type Block struct {
	Pipe    uint16 // not 0
	Loss    uint8  // loss rate, 0..127
	EOF     bool   // the end of this direction; Loss and Payload are not sent
	Payload []byte // at most MaxPayload bytes
}

// Close ends a pipe in both directions at once.
type Close struct {
	Pipe   uint16 // not 0
	Result []byte // one encoded value; nil is sent as null. Only if Abort is nil
	Abort  *Abort // nil: success
}

// Abort is the reason why a pipe ended without a result.
type Abort struct {
	Code    int32
	Message string // at most MaxString bytes
}

// Control is a message about the session.
type Control struct {
	Code byte
	Data []byte // at most MaxString bytes
}

// AppendTo implements Message. It does not check Params.
func (m *Open) AppendTo(dst []byte, c Codec) ([]byte, error) {
	f := c.form()
	b := appendCount(append(dst, openTag), f, m.Pipe)
	b = f.appendInteger(b, int64(m.Priority), 1)
	b = appendCount(appendCount(b, f, m.Function), f, m.Count)
	return finish(dst, append(b, m.Params...), m.Pipe)
}

// AppendTo implements Message. It does not check Result.
func (m *Close) AppendTo(dst []byte, c Codec) ([]byte, error) {
	f := c.form()
	b := appendCount(append(dst, closeTag), f, m.Pipe)
	switch {
	case m.Abort != nil && len(m.Abort.Message) > MaxString:
		return dst, malformed(0, "the message of an Abort has %d bytes, more than %d", len(m.Abort.Message), MaxString)
	case m.Abort != nil:
		b = f.appendInteger(append(b, falseTag), int64(m.Abort.Code), 4)
		b = appendRaw(b, f, m.Abort.Message)
	case m.Result == nil:
		b = append(b, trueTag, nullTag)
	default:
		b = append(append(b, trueTag), m.Result...)
	}
	return finish(dst, b, m.Pipe)
}

// maxLoss is the value of Loss that means 100 %.
const maxLoss = 127

// AppendTo implements Message.
func (m *Block) AppendTo(dst []byte, c Codec) ([]byte, error) {
	f := c.form()
	b := appendCount(append(dst, blockTag), f, m.Pipe)
	switch {
	case m.EOF:
		return finish(dst, f.appendInteger(b, eofStatus, 1), m.Pipe)
	case m.Loss > maxLoss:
		return dst, malformed(0, "loss rate %d is not in 0 to %d", m.Loss, maxLoss)
	case len(m.Payload) > MaxPayload:
		return dst, payloadTooLong(len(m.Payload))
	}
	return finish(dst, appendRaw(f.appendInteger(b, int64(m.Loss), 1), f, m.Payload), m.Pipe)
}

// AppendTo implements Message.
func (m *Control) AppendTo(dst []byte, c Codec) ([]byte, error) {
	if len(m.Data) > MaxString {
		return dst, &SizeError{Size: 4 + len(m.Data), Limit: MaxMessage}
	}
	f := c.form()
	b := f.appendInteger(append(dst, controlTag), int64(int8(m.Code)), 1)
	return sized(dst, appendRaw(b, f, m.Data))
}

// finish returns b, which is dst with a message behind it, if the message is valid.
func finish(dst, b []byte, pipe uint16) ([]byte, error) {
	if pipe == 0 {
		return dst, malformed(1, "pipe id 0, which no message but Control may have")
	}
	return sized(dst, b)
}

func sized(dst, b []byte) ([]byte, error) {
	if n := len(b) - len(dst); n > MaxMessage {
		return dst, &SizeError{Size: n, Limit: MaxMessage}
	}
	return b, nil
}

func payloadTooLong(n int) error {
	return malformed(4, "payload of %d bytes, more than %d", n, MaxPayload)
}
