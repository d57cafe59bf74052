package outbox

import "slices"

// parting is how far the message at the head of a flow has left that leaves in parts.
type parting struct {
	around []byte // its frame, but for the payload
	at     int    // where in it that belongs
	whole  int    // bytes of the frame
	left   int    // bytes of it that have left
	number uint64 // how many had begun with it
	open   bool   // it is the Open
}

// rest returns how many bytes of the frame have not left.
func (p *parting) rest() int { return p.whole - p.left }

// next returns the next n bytes of the frame: what comes before the payload, of the payload, and
// what comes after it.
func (p *parting) next(payload []byte, n int) (head, body, tail []byte) {
	begin := p.left
	p.left += n
	head = window(p.around[:p.at], begin, n)
	body = window(payload, begin-p.at, n)
	tail = window(p.around[p.at:], begin-p.at-len(payload), n)
	return head, body, tail
}

// window returns what of b is in the n bytes from begin on, which may be outside of b.
func window(b []byte, begin, n int) []byte {
	end := min(max(begin+n, 0), len(b))
	return b[min(max(begin, 0), end):end]
}

// underway is the messages of an Outbox that have begun to leave in parts, and are not complete.
type underway struct {
	begun uint64  // how many have begun
	flows []*Flow // of those that are not complete, in the order in which they have begun
}

func (u *underway) begin(f *Flow) (number uint64) {
	u.begun++
	u.flows = append(u.flows, f)
	return u.begun
}

func (u *underway) end(f *Flow) {
	u.flows = slices.DeleteFunc(u.flows, func(other *Flow) bool { return other == f })
}

// find returns the flow of a pipe, or nil if no message of the pipe is underway.
func (u *underway) find(id uint64) *Flow {
	for _, f := range u.flows {
		if f.id == id {
			return f
		}
	}
	return nil
}

// unfinishedOpen reports whether the Open of f has begun to leave in parts, and is not complete.
func (f *Flow) unfinishedOpen() bool {
	return f.backlog != nil && f.backlog.parting != nil && f.backlog.parting.open
}

// number returns how many messages had begun to leave in parts with the one of f.
func (f *Flow) number() uint64 { return f.backlog.parting.number }
