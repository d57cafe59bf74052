package message

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// Close ends a pipe in both directions at once: with a result, or with the reason why there is
// none.
type Close struct {
	Pipe   uint64       // at most MaxPipe
	Result []byte       // encoded result, nil is sent as empty; sent only if Abort is nil
	Abort  *codec.Abort // nil: success
}

// AppendTo appends the frame of m to dst and returns the longer slice. It copies Result and the
// sent fields of Abort: Code, Message, Detail (absent if nil), and whether Ran is Refused.
func (m *Close) AppendTo(dst []byte) []byte {
	dst = appendStart(dst, CloseType, m.count(), m.Pipe, &Meta{})
	return m.appendFields(dst)
}

// AppendAround appends the frame of m without Result, and returns the longer slice and the position
// of Result in it. Abort must be nil.
func (m *Close) AppendAround(dst []byte) (around []byte, at int) {
	dst = appendStart(dst, CloseType, m.count(), m.Pipe, &Meta{})
	dst = cborhead.AppendHead(append(dst, cborhead.True), cborhead.Bytes, uint64(len(m.Result)))
	return dst, len(dst)
}

// count returns how many fields follow the pipe id.
func (m *Close) count() int {
	switch {
	case m.Abort == nil:
		return 2 // true, result
	case m.Abort.Detail == nil:
		return 3 // false or null, code, message
	default:
		return 4
	}
}

func (m *Close) appendFields(dst []byte) []byte {
	a := m.Abort
	if a == nil {
		return cborhead.AppendBytes(append(dst, cborhead.True), m.Result)
	}
	outcome := byte(cborhead.False)
	if a.Ran == codec.Refused {
		outcome = cborhead.Null
	}
	dst = append(dst, outcome)
	dst = appendReason(dst, a.Code, a.Message)
	if a.Detail != nil {
		dst = cborhead.AppendBytes(dst, a.Detail)
	}
	return dst
}

// ParseClose reads the frame of a Close. Result and Detail are parts of frame; the Message of an
// Abort is a copy, truncated to codec.MaxReason bytes. An Abort is marked as Remote, and its Ran is
// Refused or MaybeRan. The error is a *FrameError.
func ParseClose(frame []byte) (Close, error) {
	r := cborhead.Reader{Data: frame}
	n := start(&r, CloseType, 4, 6)
	m := Close{Pipe: r.Uint("pipe id", MaxPipe)}
	switch at := r.At; r.Simple() {
	case cborhead.True:
		arity(&r, n, 4, 4, "a Close with a result")
		m.Result = r.Bytes("result")
	case cborhead.False:
		m.Abort = readAbort(&r, n, codec.MaybeRan)
	case cborhead.Null:
		m.Abort = readAbort(&r, n, codec.Refused)
	default:
		r.Fail(at, "outcome is neither true, false nor null")
	}
	if err := end(&r); err != nil {
		return Close{}, err
	}
	return m, nil
}

// readAbort reads code, message and perhaps detail of a Close of n elements.
func readAbort(r *cborhead.Reader, n int, ran codec.Ran) *codec.Abort {
	arity(r, n, 5, 6, "a Close with an abort")
	a := &codec.Abort{Code: readCode(r), Message: readReason(r), Remote: true, Ran: ran}
	if n == 6 {
		a.Detail = r.Bytes("detail")
	}
	return a
}
