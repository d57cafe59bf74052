package classicwire

import "sync"

// pendingReplies holds the answers to unexpected messages of the peer, which the session does not
// give. When there are some, the Wire sends the session a Ping, and writes them with its Pong: on
// the writing goroutine, even if the session drops some of the Pongs. owed locks itself.
type pendingReplies struct {
	mu      sync.Mutex
	answers []uint32 // guarded by mu: ids of pipes, and duplicate
}

const (
	// marks the answer to an Open with an id in use; otherwise the answer is to a Block for an
	// unknown pipe
	duplicate = 1 << 16
	mostOwed  = 1024 // maximum number of queued answers; further ones are dropped
)

// put adds an answer, and reports whether it is the first.
func (o *pendingReplies) put(answer uint32) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.answers) < mostOwed {
		o.answers = append(o.answers, answer)
	}
	return len(o.answers) == 1
}

// take returns all answers, in their order.
func (o *pendingReplies) take() []uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.answers
	o.answers = nil
	return all
}
