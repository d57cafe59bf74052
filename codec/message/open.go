package message

import (
	"math"

	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// Open requests that the peer runs a function: it starts a pipe.
type Open struct {
	Pipe     uint64 // at most MaxPipe; even from the connecting side, odd from the accepting side
	Function uint16
	Priority int8   // relative to the other pipes of the session; 0 is normal
	Params   []byte // encoded parameters; nil is sent as empty
	// TTL, Trace, Key, Metadata, Nested and Stream are sent, with Within and Window; the other
	// fields are not
	Meta Meta
}

const (
	openFields  = 3 // function, priority and params
	maxFunction = math.MaxUint16
	maxPriority = math.MaxInt8
)

// AppendTo appends the frame of m to dst and returns the longer slice. It copies Params.
func (m *Open) AppendTo(dst []byte) []byte {
	dst = appendStart(dst, OpenType, openFields, m.Pipe, &m.Meta)
	dst = m.appendFields(dst)
	return m.Meta.appendTo(dst, OpenType)
}

// AppendAround appends the frame of m without Params, and returns the longer slice and the position
// of Params in it.
func (m *Open) AppendAround(dst []byte) (around []byte, at int) {
	dst = appendStart(dst, OpenType, openFields, m.Pipe, &m.Meta)
	dst = m.appendParamsHead(dst)
	return m.Meta.appendTo(dst, OpenType), len(dst)
}

func (m *Open) appendFields(dst []byte) []byte {
	return append(m.appendParamsHead(dst), m.Params...)
}

// appendParamsHead appends the items before the bytes of Params.
func (m *Open) appendParamsHead(dst []byte) []byte {
	dst = cborhead.AppendUint(dst, uint64(m.Function))
	dst = cborhead.AppendInt(dst, int64(m.Priority))
	return cborhead.AppendHead(dst, cborhead.Bytes, uint64(len(m.Params)))
}

// ParseOpen reads the frame of an Open. Params, Trace, Key and Metadata of the result are parts of
// frame. The error is a *FrameError.
func ParseOpen(frame []byte) (Open, error) {
	r := cborhead.Reader{Data: frame}
	n := start(&r, OpenType, 2+openFields, 3+openFields)
	m := Open{
		Pipe:     r.Uint("pipe id", MaxPipe),
		Function: uint16(r.Uint("function", maxFunction)),
		Priority: int8(r.Int("priority", maxPriority)),
		Params:   r.Bytes("params"),
	}
	if n > 2+openFields {
		readMeta(&r, OpenType, &m.Meta)
	}
	if err := end(&r); err != nil {
		return Open{}, err
	}
	return m, nil
}
