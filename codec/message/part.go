package message

import "github.com/asterisque-go/asterisque/internal/cborhead"

// Bounds of messages in parts, in bytes.
const (
	// MaxFrame is the largest frame on a wire: a longer frame of an Open, a Block or a Close is
	// sent in parts.
	MaxFrame = 65 << 10
	// MaxPart and LeastPart bound the bytes of a frame in one part. The last part may hold less.
	MaxPart   = 64 << 10
	LeastPart = 1 << 10
	// MaxAround is the most bytes of a frame in parts besides payload or result, and MaxAroundOpen
	// besides params. A Close with an abort has no such bound.
	MaxAround     = 1 << 10
	MaxAroundOpen = 6 << 10
)

// Part is a part of the frame of an Open, a Block or a Close. The concatenated parts of a frame are
// the frame. Parts of other pipes may come between them.
type Part struct {
	Pipe uint64 // at most MaxPipe
	// 1 to MaxPart bytes of the frame, and at least LeastPart except in the last part
	Bytes []byte
	Whole uint64 // of the first part: size of the frame in bytes; 0: not the first part
	// the parts received so far are to be discarded: there will be no more. Bytes and Whole are not
	// sent
	GivenUp bool
}

// AppendTo appends the frame of m to dst and returns the longer slice. It copies Bytes.
func (m *Part) AppendTo(dst []byte) []byte {
	switch {
	case m.GivenUp:
		return append(m.appendStart(dst, 3), cborhead.Null)
	case m.Whole == 0:
		return cborhead.AppendBytes(m.appendStart(dst, 3), m.Bytes)
	}
	return cborhead.AppendNumber(cborhead.AppendBytes(m.appendStart(dst, 4), m.Bytes), m.Whole)
}

// AppendAround appends the frame of m without its size Bytes, and returns the longer slice and the
// position of Bytes in it. GivenUp must not be set.
func (m *Part) AppendAround(dst []byte, size int) (around []byte, at int) {
	n := 3
	if m.Whole > 0 {
		n = 4
	}
	dst = cborhead.AppendHead(m.appendStart(dst, n), cborhead.Bytes, uint64(size))
	at = len(dst)
	if m.Whole > 0 {
		dst = cborhead.AppendNumber(dst, m.Whole)
	}
	return dst, at
}

// appendStart appends the start of a Part of n elements.
func (m *Part) appendStart(dst []byte, n int) []byte {
	return cborhead.AppendUint(append(dst, cborhead.Array|byte(n), byte(PartType)), m.Pipe)
}

// ParsePart reads the frame of a Part. Bytes of the result is a part of frame. The error is a
// *FrameError.
func ParsePart(frame []byte) (Part, error) {
	r := cborhead.Reader{Data: frame}
	n := start(&r, PartType, 3, 4)
	m := Part{Pipe: r.Uint("pipe id", MaxPipe)}
	if n == 3 {
		m.GivenUp = r.Null()
	}
	if !m.GivenUp {
		m.Bytes = r.BytesOf("part", 1, MaxPart)
	}
	if at := r.At; n == 4 {
		m.Whole = r.UintFrom("whole", uint64(len(m.Bytes)), MaxPipe)
		if len(m.Bytes) < LeastPart && m.Whole > uint64(len(m.Bytes)) {
			r.Fail(at, "first part of %d bytes, and the frame has %d", len(m.Bytes), m.Whole)
		}
	}
	if err := end(&r); err != nil {
		return Part{}, err
	}
	return m, nil
}

// Head has the fields of a message that the first part of its frame contains.
type Head struct {
	Type     Type // OpenType, BlockType or CloseType
	Abort    bool // of a Close: there is no result
	Priority int8 // of an Open
	Pipe     uint64
	Content  int // bytes of params, payload or result; 0 of an abort
	At       int // place of these in the frame
}

// ParseHead reads the head of a frame; m is the first part of it. It validates the head, and that
// the frame holds its content and not too much more: see [MaxAround]. The rest of the frame may
// still be malformed. The error is a *FrameError.
func ParseHead(m *Part) (Head, error) {
	r := cborhead.Reader{Data: m.Bytes}
	n := r.Array("the message")
	h := Head{Type: Type(r.UintFrom("message type", uint64(OpenType), uint64(CloseType)))}
	if h.Pipe = r.Uint("pipe id", MaxPipe); h.Pipe != m.Pipe {
		r.Fail(0, "a part of pipe %d is of a message of pipe %d", m.Pipe, h.Pipe)
	}
	around := uint64(MaxAround)
	switch h.Type {
	case OpenType:
		around = MaxAroundOpen
		arity(&r, n, 2+openFields, 3+openFields, "Open")
		r.Uint("function", maxFunction)
		h.Priority = int8(r.Int("priority", maxPriority))
	case BlockType:
		arity(&r, n, 2+blockFields, 3+blockFields, "Block")
	case CloseType:
		arity(&r, n, 4, 6, "Close")
		h.Abort = r.Simple() != cborhead.True
	}
	if !h.Abort {
		h.Content = readLength(&r, m.Whole, around)
		h.At = r.At
	}
	if r.Err != nil {
		return Head{}, (*FrameError)(r.Err)
	}
	return h, nil
}

// readLength reads the head of the byte string that is a frame of whole bytes, except for around of
// them.
func readLength(r *cborhead.Reader, whole, around uint64) int {
	at := r.At
	major, n := r.Head()
	switch {
	case major != cborhead.Bytes:
		r.Fail(at, "the content of a message in parts is no byte string")
	case n > whole-uint64(r.At), whole-n > around:
		r.Fail(at, "a content of %d bytes in a frame of %d", n, whole)
	}
	return int(n)
}
