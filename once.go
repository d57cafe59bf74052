package asterisque

import (
	"bytes"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/limits"
)

// once remembers the durable calls of all peers by their idempotency keys, so that each of them runs once however often it arrives: a repetition waits for the first one, and gets its answer.
type once struct {
	keep time.Duration // how long an answer is remembered; fixed, as most
	most limits.Amount // of what is remembered

	mu    sync.Mutex
	calls map[string]*memory  // guarded by mu, as all below
	old   fifo.Queue[*memory] // those with an answer, in the order in which they got it
	held  limits.Amount
}

// memory is what is known of one call.
type memory struct {
	key      string
	size     int // bytes that it holds
	answered bool
	result   []byte
	abort    *Abort
	until    time.Time   // then it is forgotten
	first    *incoming   // the call that runs; nil once it has
	waiting  []*incoming // repetitions
}

// mostRepetitions is how many may wait for one call.
const mostRepetitions = 8

// begin reports whether c, which has a key, is to run. Otherwise it is answered with what became of the first one, at once or later.
func (o *once) begin(c *incoming) (run bool) {
	key := c.s.Peer().identity() + string(c.rare.key)
	o.mu.Lock()
	o.forgetLocked(time.Now())
	m := o.calls[key]
	switch {
	case m == nil && (o.most.Messages > 0 && len(o.calls) >= o.most.Messages || o.most.Bytes > 0 && o.held.Bytes >= o.most.Bytes):
		o.mu.Unlock()
		c.s.calls.giveBack(c.cost(), c.nested())
		c.refuse(codec.OverloadedFor(time.Second, "too many durable calls are remembered here"))
		return false
	case m == nil:
		if o.calls == nil {
			o.calls = make(map[string]*memory)
		}
		m = &memory{key: key, size: heldRemember + buffer.Allocated(len(key)), first: c}
		o.calls[key] = m
		c.rare.memory = m
		o.held.Bytes += m.size
		o.mu.Unlock()
		return true
	case m.answered:
		o.mu.Unlock()
		c.onReader = c.pipe == nil
		c.reply(m.result, m.abort)
	case len(m.waiting) >= mostRepetitions:
		o.mu.Unlock()
		c.s.calls.giveBack(c.cost(), c.nested())
		c.refuse(codec.ErrOverloaded.Withf("the call runs, and %d repetitions wait for it already", mostRepetitions))
	default:
		m.waiting = append(m.waiting, c)
		o.mu.Unlock()
	}
	return false
}

// answer notes what became of a call, and answers the repetitions that wait for it.
func (o *once) answer(m *memory, result []byte, a *Abort) {
	o.mu.Lock()
	if m.answered {
		o.mu.Unlock()
		return
	}
	m.answered, m.first, m.result, m.abort = true, nil, bytes.Clone(result), a
	m.until = time.Now().Add(o.keep)
	o.old.Push(m)
	more := buffer.Allocated(len(result)) + heldByAbort(a)
	m.size += more
	o.held.Bytes += more
	waiting := m.waiting
	m.waiting = nil
	o.mu.Unlock()
	for _, c := range waiting {
		c.repeat(m.result, a)
	}
}

// refuse forgets a call that did not run. If a repetition waits, that runs in its place.
func (o *once) refuse(m *memory) {
	o.mu.Lock()
	if len(m.waiting) == 0 {
		delete(o.calls, m.key)
		o.held.Bytes -= m.size
		o.mu.Unlock()
		return
	}
	next := m.waiting[0]
	m.first, m.waiting = next, m.waiting[1:]
	next.rare.memory = m
	o.mu.Unlock()
	next.s.enqueue(next)
}

// repeat answers a repetition with what became of the first call. Its Open has waited until now.
func (c *incoming) repeat(result []byte, a *Abort) {
	c.s.calls.giveBack(c.cost(), c.nested())
	c.reply(result, a)
}

func (o *once) forgetLocked(now time.Time) {
	for o.old.Len() > 0 {
		m := *o.old.Peek()
		if now.Before(m.until) {
			return
		}
		o.old.Pop()
		delete(o.calls, m.key)
		o.held.Bytes -= m.size
	}
}

// end ends the contexts of the calls that run: they outlive their sessions, but not the node.
func (o *once) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.calls {
		if m.first != nil {
			m.first.end(canceled)
		}
	}
}
