package carrier

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/priority"
)

// together returns the parts of the Carrier, creating them if necessary.
func (r *reader) together() *reassembler {
	p := r.parts.Load()
	if p == nil {
		p = &reassembler{
			receiver: r.receiver, now: r.Now, most: int(r.most),
			unfinished: make(map[uint64]*partialMessage), closes: make(map[priority.Priority]bool),
		}
		r.parts.Store(p)
	}
	return p
}

// part processes a part of a message. It returns false if the Wire is lost, or the session has
// ended, before the part was processed.
func (r *reader) part(frame []byte) (dealt bool, err error) {
	m, err := message.ParsePart(frame)
	if err != nil {
		return true, err
	}
	p := r.together()
	if m.GivenUp {
		if h, ok := p.drop(m.Pipe); ok {
			r.receiver.GivenUp(h)
			return true, nil
		}
		return true, r.receiver.Stray(m.Pipe)
	}
	if m.Whole > 0 {
		h, err := message.ParseHead(&m)
		if err != nil {
			return true, err
		}
		if countedByLimits(h.Type) && !r.waitInbound() {
			return false, nil
		}
		if err := p.begin(h, &m); err != nil {
			return true, err
		}
	}
	complete, known, err := p.add(&m)
	switch {
	case err != nil:
	case !known:
		err = r.receiver.Stray(m.Pipe)
	case complete != nil:
		err = r.complete(complete)
	}
	return true, err
}

// complete passes an assembled message to the Receiver.
func (r *reader) complete(u *partialMessage) error {
	if u.mem == nil {
		return nil // the message is ignored
	}
	p := r.together()
	p.whole = u.mem
	defer p.release() // also if application code ends the goroutine
	return r.receiver.Receive(u.Type, u.mem.B[:u.whole], max(1, r.Now()-u.since))
}

// keep is reader.keep for an assembled message.
func (p *reassembler) keep(part []byte) (mem *buffer.Buffer) {
	if !p.whole.Filled(len(part)) {
		return nil
	}
	mem, p.whole = p.whole, nil
	return mem
}

// release releases the memory of the processed message, unless it was kept.
func (p *reassembler) release() {
	if p.whole != nil {
		p.whole.Release()
		p.whole = nil
	}
}
