package codec

import "math"

// Open asks the peer to run a function: it starts a pipe.
type Open struct {
	Pipe     uint64 // at most MaxPipe; even from the connecting side, odd from the accepting side
	Function uint16
	Priority int8   // relative to the other pipes of the session; 0 is normal
	Params   []byte // encoded parameters; nil is sent as empty
	// TTL, Trace, Key, Nested and Stream are sent, with Within and Window; the rest is not
	Meta Meta
}

// openFields are function, priority and params.
const openFields = 3

// AppendTo appends the frame of m to dst and returns the longer slice. It copies Params.
func (m *Open) AppendTo(dst []byte) []byte {
	dst = appendStart(dst, OpenType, openFields, m.Pipe, &m.Meta)
	dst = m.appendFields(dst)
	return m.Meta.appendTo(dst, OpenType)
}

// AppendAround appends the frame of m without Params, and returns the longer slice and the place in
// it where Params belong.
func (m *Open) AppendAround(dst []byte) (around []byte, at int) {
	dst = appendStart(dst, OpenType, openFields, m.Pipe, &m.Meta)
	dst = m.appendParamsHead(dst)
	return m.Meta.appendTo(dst, OpenType), len(dst)
}

func (m *Open) appendFields(dst []byte) []byte {
	return append(m.appendParamsHead(dst), m.Params...)
}

// appendParamsHead appends what comes before the bytes of Params.
func (m *Open) appendParamsHead(dst []byte) []byte {
	dst = appendUint(dst, uint64(m.Function))
	dst = appendInt(dst, int64(m.Priority))
	return appendHead(dst, byteString, uint64(len(m.Params)))
}

// ParseOpen reads the frame of an Open. Params, Trace and Key of the result are parts of frame. The
// error is a *FrameError.
func ParseOpen(frame []byte) (Open, error) {
	r := reader{frame: frame}
	n := r.start(OpenType, 2+openFields, 3+openFields)
	m := Open{
		Pipe:     r.uint("pipe id", MaxPipe),
		Function: uint16(r.uint("function", math.MaxUint16)),
		Priority: int8(r.int("priority", math.MaxInt8)),
		Params:   r.bytes("params"),
	}
	if n > 2+openFields {
		r.meta(OpenType, &m.Meta)
	}
	if err := r.end(); err != nil {
		return Open{}, err
	}
	return m, nil
}
