package codec

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/internal/cut"
)

// MaxReason is the largest number of bytes of an Abort's or a SessionClose's message that is sent;
// longer ones are cut. A longer one that arrives is accepted, and cut then.
const MaxReason = 1024

// Close ends a pipe in both directions at once: with a result, or with the reason why there is
// none.
type Close struct {
	Pipe   uint64 // at most MaxPipe
	Result []byte // encoded result, nil is sent as empty; sent only where Abort is nil
	Abort  *Abort // nil: success
}

// AppendTo appends the frame of m to dst and returns the longer slice. It copies Result and all it
// sends of Abort: Code, Message, Detail (absent if nil), and whether Ran is Refused.
func (m *Close) AppendTo(dst []byte) []byte {
	dst = appendStart(dst, CloseType, m.count(), m.Pipe, &Meta{})
	return m.appendFields(dst)
}

// AppendAround appends the frame of m without Result, and returns the longer slice and the place in
// it where Result belongs. Abort must be nil.
func (m *Close) AppendAround(dst []byte) (around []byte, at int) {
	dst = appendStart(dst, CloseType, m.count(), m.Pipe, &Meta{})
	dst = appendHead(append(dst, yes), byteString, uint64(len(m.Result)))
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
		return appendBytes(append(dst, yes), m.Result)
	}
	outcome := byte(no)
	if a.Ran == Refused {
		outcome = null
	}
	dst = append(dst, outcome)
	dst = appendReason(dst, a.Code, a.Message)
	if a.Detail != nil {
		dst = appendBytes(dst, a.Detail)
	}
	return dst
}

// appendReason appends a code and a message, which it makes valid UTF-8 of at most MaxReason bytes.
func appendReason(dst []byte, code Code, message string) []byte {
	message = cut.Text(message, MaxReason)
	if !utf8.ValidString(message) {
		message = strings.ToValidUTF8(message, "?") // one byte, so that it gets no longer
	}
	dst = appendInt(dst, int64(code))
	return appendText(dst, message)
}

// ParseClose reads the frame of a Close. Result and Detail are parts of frame, an Abort's Message
// is not, and is cut to MaxReason bytes. An Abort is marked as Remote, and its Ran tells Refused
// from MaybeRan. The error is a *FrameError.
func ParseClose(frame []byte) (Close, error) {
	r := reader{frame: frame}
	n := r.start(CloseType, 4, 6)
	m := Close{Pipe: r.uint("pipe id", MaxPipe)}
	switch at := r.at; r.simple() {
	case yes:
		r.arity(n, 4, 4, "a Close with a result")
		m.Result = r.bytes("result")
	case no:
		m.Abort = r.abort(n, MaybeRan)
	case null:
		m.Abort = r.abort(n, Refused)
	default:
		r.fail(at, "outcome is neither true, false nor null")
	}
	if err := r.end(); err != nil {
		return Close{}, err
	}
	return m, nil
}

// abort reads code, message and perhaps detail of a Close of n elements.
func (r *reader) abort(n int, ran Ran) *Abort {
	r.arity(n, 5, 6, "a Close with an abort")
	a := &Abort{Code: r.code(), Message: r.message(), Remote: true, Ran: ran}
	if n == 6 {
		a.Detail = r.bytes("detail")
	}
	return a
}

func (r *reader) code() Code {
	return Code(r.int("code", math.MaxInt32))
}
