package natswire

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// connReceiver holds the received bytes until the reader takes them.
type connReceiver struct {
	taken atomic.Uint64 // total cost of messages that the reader has taken; it grows
	left  []byte        // belongs to the reader: the rest of the current message
	costs uint64        // belongs to the reader: cost of the current message

	mu        sync.Mutex
	changed   sync.Cond // uses mu; signals each change of the fields below
	queue     [][]byte  // guarded by mu, as all below: bodies of the messages
	arrived   uint64    // total cost of the messages that have arrived
	err       error     // the error behind the queue
	abandoned bool      // the reader was closed: the queue is discarded
	deadline  condDeadline
}

// put adds the body of a message. It fails if the peer has exceeded the window.
func (r *connReceiver) put(b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived += cost(len(b))
	if r.arrived-r.taken.Load() > window {
		return fmt.Errorf("%w: the peer has sent more than the window of %d bytes holds", ErrForeign, window)
	}
	if r.err == nil && !r.abandoned {
		r.queue = append(r.queue, b)
		r.changed.Broadcast()
	}
	return nil
}

// read waits for bytes and moves them to p. It reports whether that was the rest of a message.
func (r *connReceiver) read(p []byte) (n int, emptied bool, err error) {
	if r.left == nil {
		if r.left, err = r.next(); err != nil {
			return 0, false, err
		}
		r.costs = cost(len(r.left))
	}
	n = copy(p, r.left)
	if r.left = r.left[n:]; len(r.left) > 0 {
		return n, false, nil
	}
	r.left = nil
	r.taken.Add(r.costs)
	return n, true, nil
}

// next waits for the next message.
func (r *connReceiver) next() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case r.abandoned:
			return nil, net.ErrClosed
		case r.deadline.passed:
			return nil, r.deadline.errLocked()
		case len(r.queue) > 0:
			b := r.queue[0]
			r.queue[0] = nil
			if r.queue = r.queue[1:]; len(r.queue) == 0 {
				r.queue = nil
			}
			return b, nil
		case r.err != nil:
			return nil, r.err
		}
		r.changed.Wait()
	}
}

// end puts err behind the received bytes. Only the first error counts.
func (r *connReceiver) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.changed.Broadcast()
}

// abandon discards the received bytes.
func (r *connReceiver) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandoned, r.queue = true, nil
	r.deadline.stopLocked()
	r.changed.Broadcast()
}

// setDeadline sets the deadline of read.
func (r *connReceiver) setDeadline(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline.setLocked(t, &r.changed)
}
