package outbox

import (
	"slices"

	"github.com/asterisque-go/asterisque/codec/message"
)

// fragmenter is the progress of the message at the head of a flow that is sent in parts.
type fragmenter struct {
	around []byte // its frame without the payload
	at     int    // the place of the payload in it
	size   int    // bytes of the payload
	left   int    // bytes of the frame that have been sent
	number uint64 // value of fragmented.begun after its begin; 0 while the next piece has not come
	open   bool   // it is the Open
	gap    uint64 // dropped Blocks before it, which its receiver learns with its last part
}

// newFragmenter returns the fragmenter of m, of which nothing has been sent.
func newFragmenter(m *Message, s frameStamp) *fragmenter {
	p := &fragmenter{open: m.Type == message.OpenType}
	if m.Whole > 0 {
		p.gap = m.Skipped
	}
	if m.Abort != nil {
		p.around = m.appendTo(nil, s)
		p.at = len(p.around)
	} else {
		p.size = m.blockSize()
		p.around, p.at = m.appendAround(make([]byte, 0, HeadSize+m.size()-len(m.Payload)), s)
	}
	return p
}

// whole returns the bytes of the frame.
func (p *fragmenter) whole() int { return len(p.around) + p.size }

// rest returns the bytes of the frame that have not been sent, up to the end of m.
func (p *fragmenter) rest(m *Message) int {
	if m.lastPiece() {
		return p.whole() - p.left
	}
	return p.at + int(m.Offset) + len(m.Payload) - p.left
}

// unsent returns the bytes of the payload that have not been sent.
func (p *fragmenter) unsent() int { return p.size - max(p.left-p.at, 0) }

// next returns the next n bytes of the frame, which ends with m or continues after it: those before
// the payload, of the payload, and after it.
func (p *fragmenter) next(m *Message, n int) (head, body, tail []byte) {
	begin := p.left
	p.left += n
	head = window(p.around[:p.at], begin, n)
	body = window(m.Payload, begin-p.at-int(m.Offset), n)
	tail = window(p.around[p.at:], begin-p.at-p.size, n)
	return head, body, tail
}

// window returns the bytes of b in the range of n bytes from begin on, which may exceed b.
func window(b []byte, begin, n int) []byte {
	end := min(max(begin+n, 0), len(b))
	return b[min(max(begin, 0), end):end]
}

// fragmented is the partly sent messages of an Outbox.
type fragmented struct {
	begun uint64  // number of messages that have begun
	flows []*Flow // of the unfinished messages, in the order of their begin
}

func (u *fragmented) begin(f *Flow) (number uint64) {
	u.begun++
	u.flows = append(u.flows, f)
	return u.begun
}

func (u *fragmented) end(f *Flow) {
	u.flows = slices.DeleteFunc(u.flows, func(other *Flow) bool { return other == f })
}

// find returns the flow of a pipe, or nil if no message of the pipe is underway.
func (u *fragmented) find(id uint64) *Flow {
	for _, f := range u.flows {
		if f.id == id {
			return f
		}
	}
	return nil
}

// unfinishedOpen reports whether the Open of f is partly sent.
func (f *Flow) unfinishedOpen() bool {
	return f.backlog != nil && f.backlog.fragmenter != nil && f.backlog.fragmenter.open
}

// number returns the number of the partly sent message of f.
func (f *Flow) number() uint64 { return f.backlog.fragmenter.number }
