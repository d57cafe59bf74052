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

// leastPart is the smallest size of parts, in bytes.
const leastPart = 4 << 10

// Divide sets the size of parts. Messages of more than most bytes are sent in parts of that size,
// and other messages may be sent between the parts. most is clamped to the range from 4 KiB to the
// 64 KiB that a part may have. Divide may be called again.
func (o *Outbox) Divide(most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = min(max(most, leastPart), message.MaxPart)
}

// partLocked returns the current size of parts. Parts have their largest size while the path has
// room for whole batches.
func (o *Outbox) partLocked() int {
	if o.batch.most >= batchSize || o.part > message.MaxPart {
		return o.part
	}
	return min(o.part, max(int(o.batch.most), leastPart))
}

// divided reports whether m is sent in parts of most bytes. An abort is divided only if it has to
// be, since that of an opener must not.
func (m *Message) divided(most int) bool {
	if m.Abort != nil && most < message.MaxPart {
		most = message.MaxPart
	}
	return m.size() > most
}

// leavesLocked returns how many bytes of m, the next message, are sent now. If it is the whole of
// m, the caller sends m. If it is a part, leavesLocked has sent that part. A negative number means
// that there is no room.
func (o *Outbox) leavesLocked(m *Message, size int) int {
	piece := size
	if m.flow.lacksBegin(m) {
		return size
	}
	if part := o.partLocked(); m.begun || m.divided(part) {
		piece = min(size, part)
	}
	switch {
	case o.batch.loaded() && piece > o.batch.room():
		return -1
	case m.begun && m.Type == message.OpenType: // its Departer handles its expiry
	case !m.begun && piece == size:
		return size
	default:
		if _, ok := m.timeLeft(); !ok {
			return size
		}
	}
	return size - o.departPartLocked(m.flow, m)
}

// departPartLocked encodes the next part of m, and returns the remaining bytes of its frame.
func (o *Outbox) departPartLocked(f *Flow, m *Message) (rest int) {
	if m.begun {
		o.markPendingLocked()
	} else {
		o.beginLocked(f, m)
	}
	o.addPartLocked(f, m, o.partLocked())
	return f.backlog.fragmenter.rest(m)
}

// addPartLocked encodes the next part of m, of about most bytes.
func (o *Outbox) addPartLocked(f *Flow, m *Message, most int) {
	p := f.backlog.fragmenter
	part := message.Part{Pipe: f.id}
	if p.left == 0 {
		part.Whole = uint64(p.whole())
	}
	n := min(most, p.rest(m))
	if rest := p.rest(m) - n; rest > 0 && rest < message.LeastPart && !m.lastPiece() {
		n += rest // too little for a part of its own
	}
	o.batch.addPart(&part, m, p, n, o.lends)
	if o.log != nil {
		o.log.counted()
	}
}

// departPieceLocked encodes m, a piece of a Block, as one part.
func (o *Outbox) departPieceLocked(f *Flow, m *Message) {
	o.beginLocked(f, m)
	if len(m.Payload) > 0 {
		o.addPartLocked(f, m, message.MaxPart)
	}
	o.endPieceLocked(f, m)
}

// lacksBegin reports whether m continues a Block of which no part was sent, or that has been
// abandoned since.
func (f *Flow) lacksBegin(m *Message) bool {
	return m.Offset > 0 && (f.backlog == nil || f.backlog.fragmenter == nil)
}

// endPieceLocked is called when the whole of m, a piece of a Block, is in the departing batch.
func (o *Outbox) endPieceLocked(f *Flow, m *Message) {
	if len(m.Payload) == 0 {
		f.sent += uint32(f.backlog.fragmenter.unsent())
		o.stopLocked(f)
	} else if m.lastPiece() {
		o.forgetPartsLocked(f)
	} else {
		o.fragmented.end(f)
		f.backlog.fragmenter.number = 0
	}
	o.countLocked(f, m)
}

// beginLocked prepares m to be sent in parts.
func (o *Outbox) beginLocked(f *Flow, m *Message) {
	if m.Offset > 0 {
		o.markPendingLocked()
	} else {
		ttl, _ := m.timeLeft()
		o.leaveLocked(f, m)
		f.remember().fragmenter = newFragmenter(m, f.stamp(ttl))
	}
	if len(m.Payload) == 0 && m.Whole > 0 {
		return
	}
	if o.fragmented == nil {
		o.fragmented = new(fragmented)
	}
	f.backlog.fragmenter.number = o.fragmented.begin(f)
	m.begun = true
	m.Loss = 0 // it is not judged any more
	if m.Type == message.OpenType {
		f.reference = parted
		m.Departer.Depart(f.id)
	}
}

// departedLocked is called for a message that has left the queue and was partly sent. It reports
// whether the last part was sent; otherwise the message has expired.
func (o *Outbox) departedLocked(f *Flow, m *Message) bool {
	switch {
	case m.Whole > 0:
		o.endPieceLocked(f, m)
		return true
	case f.backlog.fragmenter.rest(m) > 0:
		o.stopLocked(f)
		o.expireLocked(f, m)
		return false
	}
	o.forgetPartsLocked(f)
	o.countLocked(f, m)
	return true
}

// Underway returns the number of the partly sent message that began first, or 0.
func (o *Outbox) Underway() (number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fragmented == nil || len(o.fragmented.flows) == 0 {
		return 0
	}
	return o.fragmented.flows[0].number()
}

// Unfinished reports whether the Open of f is partly sent. It is for an Open that has departed.
func (o *Outbox) Unfinished(f *Flow) bool {
	if f.reference != parted {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return f.unfinishedOpen()
}

// stopLocked informs the peer that no further part follows of the partly sent message of f. The
// information goes into the batch at once, because later messages may rely on it.
func (o *Outbox) stopLocked(f *Flow) {
	gap := uint64(0)
	if f.backlog != nil && f.backlog.fragmenter != nil {
		gap = f.backlog.fragmenter.gap
	}
	if o.forgetPartsLocked(f) {
		f.backlog.headGap += gap
		o.appendLocked(&message.Part{Pipe: f.id, GivenUp: true})
	}
}
