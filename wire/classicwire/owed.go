package classicwire

import (
	"fmt"
	"sync"

	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
)

// owed are the answers to messages of the peer that do not fit, which are not the session's to
// give. The session is sent a Ping when there are some, and they leave with its Pong: so they are
// written by the one who writes, however many of the Pongs the session spares. It locks itself.
type owed struct {
	mu      sync.Mutex
	answers []uint32 // guarded by mu: ids of pipes, and duplicate
}

const (
	// marks the answer to an Open with an id in use; without it, it is that to a Block for an
	// unknown pipe
	duplicate = 1 << 16
	mostOwed  = 1024 // answers that wait; a peer that wants more at once does not get them
)

// put adds an answer, and reports whether it is the first.
func (o *owed) put(answer uint32) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.answers) < mostOwed {
		o.answers = append(o.answers, answer)
	}
	return len(o.answers) == 1
}

// take returns all answers, in their order.
func (o *owed) take() []uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.answers
	o.answers = nil
	return all
}

// owe notes an answer, and appends what asks the session for a Pong, if that is needed.
func (w *classicWire) owe(dst []byte, answer uint32) []byte {
	if w.owed.put(answer) {
		return message.Ping{}.AppendTo(dst)
	}
	return dst
}

// outboundOwed appends the answers that wait.
func (w *classicWire) outboundOwed(dst []byte) (_ []byte, err error) {
	for _, a := range w.owed.take() {
		if dst, err = answer(a).AppendTo(dst); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// answer returns what the original answers to a message that does not fit.
func answer(a uint32) *classic.Close {
	id, text := uint16(a), "unknown"
	if a&duplicate != 0 {
		text = "duplicate"
	}
	return &classic.Close{Pipe: id, Abort: &classic.Abort{Code: classic.Unexpected, Message: fmt.Sprintf("%s pipe-id specified: %d", text, int16(id))}}
}
