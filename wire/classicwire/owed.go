package classicwire

import "sync"

// owed are the answers to messages of the peer that do not fit. The session does not give them. So
// the Wire sends the session a Ping when there are some, and they leave with its Pong: by the
// goroutine that writes, however many of the Pongs the session spares. owed locks itself.
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
