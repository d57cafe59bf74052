package carrier

import (
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/priority"
)

// reassembler assembles messages that arrive in parts. The reader adds the parts. The end of a pipe
// drops its unfinished message.
type reassembler struct {
	receiver Receiver // fixed, as are now and most
	now      func() time.Duration
	most     int // bytes of the largest message

	slow  transferProgress // the oldest unfinished message; belongs to liveness
	whole *buffer.Buffer   // the assembled message that is being processed; belongs to the reader

	mu sync.Mutex
	// by pipe; guarded by mu, as all below; nil once the session is over
	unfinished map[uint64]*partialMessage
	closes     map[priority.Priority]bool // the priorities of unfinished Closes
	sum        Unfinished
	began      uint64 // number of messages that have begun
}

// partialMessage is a message of which some parts have not arrived.
type partialMessage struct {
	message.Head
	whole, got int
	use        Admission
	priority   priority.Priority // of a Close
	mem        *buffer.Buffer    // nil if the message is ignored, or not admitted yet
	number     uint64            // the value of began after its begin
	since      time.Duration     // arrival of its first part, by the node's clock
}

// count adds u to the sum, or subtracts it.
func (s *Unfinished) count(u *partialMessage, sign int) {
	if u.Type == message.OpenType {
		s.Opens += sign
		s.Content += sign * u.Content
	}
	if countedByLimits(u.Type) {
		s.Counted += sign * u.whole
	}
	s.Bytes += sign * u.whole
}

// begin processes the first part of a message, and asks up to admit the message.
func (p *reassembler) begin(h message.Head, m *message.Part) error {
	if m.Whole > uint64(p.most) {
		return violation("a message of %d bytes begins, and the largest has %d", m.Whole, p.most)
	}
	u := &partialMessage{Head: h, whole: int(m.Whole), since: p.now()}
	others, ok := p.enter(u)
	if !ok {
		return violation("a message of pipe %d begins, and the one before is unfinished", h.Pipe)
	}
	use, prio, err := p.receiver.Admit(h, u.whole, others)
	switch {
	case err != nil:
		return err
	case use == Late:
		p.drop(h.Pipe)
		return nil
	case use == Ignored:
		p.ignore(u)
		return nil
	}
	if !p.hold(u, prio, buffer.Take(u.whole)) {
		return violation("a Close of pipe %d begins, and one of the same priority is unfinished", h.Pipe)
	}
	return nil
}

// enter registers u before Admit is called, so that the end of its pipe finds u. others is the sum
// of the other unfinished messages. ok is false if the pipe has an unfinished message already.
func (p *reassembler) enter(u *partialMessage) (others Unfinished, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unfinished[u.Pipe] != nil {
		return others, false
	}
	p.began++
	u.number = p.began
	others = p.sum
	if p.unfinished != nil {
		p.unfinished[u.Pipe] = u
		p.sum.count(u, 1)
	}
	return others, true
}

// ignore marks u as ignored: its remaining parts are received without memory.
func (p *reassembler) ignore(u *partialMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unfinished[u.Pipe] == u {
		p.sum.count(u, -1)
		u.use = Ignored
	}
}

// hold gives u its memory. It returns false if another Close of the same priority is unfinished.
func (p *reassembler) hold(u *partialMessage, prio priority.Priority, mem *buffer.Buffer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unfinished[u.Pipe] != u { // its pipe has ended
		mem.Release()
		return true
	}
	u.mem = mem
	if u.Type != message.CloseType {
		return true
	}
	u.priority = prio
	first := !p.closes[prio]
	p.closes[prio] = true
	return first
}

// add adds a part, the first one included. ok is false if the pipe has no unfinished message. A
// complete message is removed and returned together with its memory.
func (p *reassembler) add(m *message.Part) (complete *partialMessage, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.unfinished[m.Pipe]
	if u == nil {
		return nil, false, nil
	}
	got := u.got + len(m.Bytes)
	switch {
	case got > u.whole:
		return nil, true, violation("%d bytes of a message of pipe %d, which has %d", got, m.Pipe, u.whole)
	case got < u.whole && len(m.Bytes) < message.LeastPart:
		return nil, true, violation("a part of %d bytes, which is not the last one, of pipe %d", len(m.Bytes), m.Pipe)
	}
	if u.mem != nil {
		copy(u.mem.B[u.got:], m.Bytes)
	}
	u.got = got
	if got < u.whole {
		return nil, true, nil
	}
	p.removeLocked(u)
	return u, true, nil
}

// drop releases the unfinished message of a pipe, and reports whether there was one.
func (p *reassembler) drop(pipe uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.unfinished[pipe]
	if u == nil {
		return false
	}
	p.removeLocked(u)
	u.release()
	return true
}

func (p *reassembler) removeLocked(u *partialMessage) {
	delete(p.unfinished, u.Pipe)
	if u.use != Ignored {
		p.sum.count(u, -1)
	}
	if u.mem != nil && u.Type == message.CloseType {
		delete(p.closes, u.priority)
	}
}

// release releases the memory of u, if any.
func (u *partialMessage) release() {
	if u.mem != nil {
		u.mem.Release()
		u.mem = nil
	}
}

// has reports whether a message of pipe is unfinished.
func (p *reassembler) has(pipe uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unfinished[pipe] != nil
}

// bytes returns the bytes of the unfinished messages.
func (p *reassembler) bytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum.Bytes
}

// oldest returns the number of the unfinished message that began first, or 0.
func (p *reassembler) oldest() (number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.unfinished {
		if number == 0 || u.number < number {
			number = u.number
		}
	}
	return number
}

// end releases everything, and keeps no further parts.
func (p *reassembler) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.unfinished {
		u.release()
	}
	p.unfinished, p.sum = nil, Unfinished{}
}

// countedByLimits reports whether messages of type t are Opens or Blocks. All other types pass a
// session with a stopped reader: results do not queue behind requests, and Controls show that the
// peer lives.
func countedByLimits(t message.Type) bool { return t == message.OpenType || t == message.BlockType }
