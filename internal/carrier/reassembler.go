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
	mem        *buffer.Buffer    // nil if the message is ignored, or has no memory yet
	number     uint64            // the value of began after its begin
	since      time.Duration     // arrival of its first part, by the node's clock

	// bytes that are counted: of the whole message, and of a Block those of its memory
	counted int

	// of a Block, for liveness: the value of got, and the time of its last change by the clock of
	// looks, 0 if it was not looked at, and the bytes that the session had received by then
	seen  int
	moved time.Duration
	from  uint64
}

// count adds u to the sum, or subtracts it.
func (s *Unfinished) count(u *partialMessage, sign int) {
	if u.Type == message.OpenType {
		s.Opens += sign
		s.Content += sign * u.Content
	}
	if countedByLimits(u.Type) {
		s.Counted += sign * u.counted
	}
	s.Bytes += sign * u.counted
}

// payload returns the bytes of the payload among the first got bytes of the frame.
func (u *partialMessage) payload(got int) int { return min(max(got-u.At, 0), u.Content) }

// begin processes the first part of a message, and asks up to admit the message.
func (p *reassembler) begin(h message.Head, m *message.Part) error {
	if m.Whole > uint64(p.most) {
		return violation("a message of %d bytes begins, and the largest has %d", m.Whole, p.most)
	}
	u := &partialMessage{Head: h, whole: int(m.Whole), since: p.now()}
	if h.Type != message.BlockType {
		u.counted = u.whole
	}
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
		p.ignore(h.Pipe)
		return nil
	case h.Type == message.BlockType: // gets its memory as its parts arrive
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

// ignore marks the unfinished message of a pipe as ignored: its remaining parts are received
// without memory.
func (p *reassembler) ignore(pipe uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u := p.unfinished[pipe]; u != nil && u.Type == message.BlockType && u.use != Ignored {
		p.sum.count(u, -1)
		u.use = Ignored
		u.release()
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
	u, got, wanted, err := p.check(m)
	if u == nil || err != nil {
		return nil, u != nil, err
	}
	most := u.whole
	if u.Type == message.BlockType && wanted {
		granted, use, err := p.receiver.BlockPart(u.Pipe, u.payload(got))
		switch {
		case err != nil:
			return nil, true, err
		case use != Admitted:
			p.ignore(u.Pipe)
		case granted < u.Content:
			most = u.At + granted
		}
	}
	return p.append(u, m.Bytes, most), true, nil
}

// check returns the message that m continues, and the bytes that have arrived of it with m.
func (p *reassembler) check(m *message.Part) (u *partialMessage, got int, wanted bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u = p.unfinished[m.Pipe]; u == nil {
		return nil, 0, false, nil
	}
	got = u.got + len(m.Bytes)
	switch {
	case got > u.whole:
		err = violation("%d bytes of a message of pipe %d, which has %d", got, m.Pipe, u.whole)
	case got < u.whole && len(m.Bytes) < message.LeastPart:
		err = violation("a part of %d bytes, which is not the last one, of pipe %d", len(m.Bytes), m.Pipe)
	}
	return u, got, u.use != Ignored, err
}

// append appends the bytes of a part to u, which may have been removed meanwhile. The peer may send
// most bytes of u for now. append returns u if it is complete.
func (p *reassembler) append(u *partialMessage, part []byte, most int) (complete *partialMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unfinished[u.Pipe] != u {
		return nil
	}
	got := u.got + len(part)
	if u.use != Ignored {
		p.enlargeLocked(u, got, max(got, most))
		copy(u.mem.B[u.got:], part)
	}
	if u.got = got; got < u.whole {
		return nil
	}
	p.removeLocked(u)
	return u
}

// enlargeLocked gives u memory for most bytes if it has less than need. Memory grows with the
// credit of the peer, a few times for each message, so that an announced Block costs nothing.
func (p *reassembler) enlargeLocked(u *partialMessage, need, most int) {
	if u.mem != nil && len(u.mem.B) >= need {
		return
	}
	mem := buffer.Take(most)
	if u.mem != nil {
		copy(mem.B, u.mem.B[:u.got])
		u.mem.Release()
	}
	u.mem = mem
	p.sum.count(u, -1)
	u.counted = most
	p.sum.count(u, 1)
}

// drop releases the unfinished message of a pipe, and returns its head. ok reports whether there
// was one.
func (p *reassembler) drop(pipe uint64) (h message.Head, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.unfinished[pipe]
	if u == nil {
		return h, false
	}
	p.removeLocked(u)
	u.release()
	return u.Head, true
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

// oldest returns the number of the unfinished message that began first, or 0. A Block does not
// count: it may wait for credit.
func (p *reassembler) oldest() (number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.unfinished {
		if u.Type != message.BlockType && (number == 0 || u.number < number) {
			number = u.number
		}
	}
	return number
}

// The turn of a Block in parts must have come when so many bytes have arrived for each unfinished
// Block since its last part: a low priority gets a small share of them. With fewer than quietBytes
// nothing else has arrived that could have been before it.
const (
	turnBytes  = 4 << 20
	quietBytes = 16 << 10
)

// idleBlocks returns the pipes of the Blocks of which no part has come since the last look. The
// value is true if none has come for the timeout, although its turn must have come. received is the
// number of bytes that the session has received.
func (p *reassembler) idleBlocks(now, timeout time.Duration, received uint64) map[uint64]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := turnBytes * uint64(len(p.unfinished))
	pipes := make(map[uint64]bool)
	for pipe, u := range p.unfinished {
		switch since := received - u.from; {
		case u.Type != message.BlockType || u.use == Ignored:
		case u.seen != u.got || u.moved == 0:
			u.seen, u.moved, u.from = u.got, now, received
		default:
			pipes[pipe] = now-u.moved >= timeout && (since < quietBytes || since > turn)
		}
	}
	return pipes
}

// excuse starts the time for the next part of a Block again.
func (p *reassembler) excuse(pipe uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u := p.unfinished[pipe]; u != nil {
		u.moved = 0
	}
}

// excuseAll is excuse for all Blocks.
func (p *reassembler) excuseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.unfinished {
		u.moved = 0
	}
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
