package outbox

import "slices"

// fragmenter is the progress of the message at the head of a flow that is sent in parts.
type fragmenter struct {
	around []byte // its frame without the payload
	at     int    // the place of the payload in it
	whole  int    // bytes of the frame
	left   int    // bytes of it that have been sent
	number uint64 // value of fragmented.begun after its begin
	open   bool   // it is the Open
}

// rest returns the bytes of the frame that have not been sent.
func (p *fragmenter) rest() int { return p.whole - p.left }

// next returns the next n bytes of the frame: those before the payload, of the payload, and after
// it.
func (p *fragmenter) next(payload []byte, n int) (head, body, tail []byte) {
	begin := p.left
	p.left += n
	head = window(p.around[:p.at], begin, n)
	body = window(payload, begin-p.at, n)
	tail = window(p.around[p.at:], begin-p.at-len(payload), n)
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
