package asterisque

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/limits"
)

// once remembers the durable calls of all peers by their idempotency keys, so that each of them runs
// once however often it arrives: a repetition waits for the first one, and gets its answer.
//
// Nothing of that is for free, so each owner has a share of what is remembered, and may have so many
// durable calls run as a session has workers, those included whose sessions have ended.
type once struct {
	owners  *owners       // these are fixed
	keep    time.Duration // how long an answer is remembered, and a call runs on without a session
	most    limits.Amount // of what is remembered; 0: any number
	share   float64       // of that, for each owner
	running int           // how many durable calls of one owner run at once
	orphans int           // how many may run on, of all owners together, whose sessions have ended

	mu       sync.Mutex
	calls    map[string]*memory  // guarded by mu, as all below
	answered fifo.Queue[*memory] // in the order in which they were
	lonely   list.List           // of *memory: those whose sessions have ended while they ran, in that order
	held     limits.Amount
	timer    *time.Timer // forgets; nil while nothing is answered
	ended    bool
}

// init prepares o for a node.
func (o *once) init(cfg *config, owners *owners) {
	o.owners, o.keep, o.most, o.share, o.running = owners, cfg.remember, cfg.remembered, cfg.memoryShare, cfg.plan.Workers
	o.orphans = ownersWithin * o.running
	if cfg.nodeWorkers > 0 {
		o.orphans = max(cfg.nodeWorkers/2, 1) // the other half is for those who are there
	}
}

// ownersWithin is how many owners may have all of what is theirs at once.
const ownersWithin = 8

// durableShare is what once knows of one owner.
type durableShare struct {
	held     limits.Amount
	answered fifo.Queue[*memory] // in their order
	gate     *gate               // through which its durable calls run; fixed
}

// memory is what is known of one call.
type memory struct {
	key      string // these are fixed
	owner    *owner
	function uint16
	digest   [16]byte // of the parameters

	size     int // bytes that it holds; guarded by the lock of once, as all below
	answered bool
	result   []byte
	abort    *Abort
	until    time.Time   // then it is forgotten
	open     *unanswered // nil once it is answered
}

// unanswered is what is known of a call only until it is answered.
type unanswered struct {
	first   *incoming     // the call that waits to run, or runs
	params  []byte        // of it, until it runs
	waiting []*incoming   // repetitions, the oldest first
	alone   *list.Element // of once.lonely; nil while it has its session
	lapse   *time.Timer   // ends the context of one that is alone
}

// mostRepetitions is how many may wait for one call.
const mostRepetitions = 8

// What a key is refused for.
var (
	errKeyStream = codec.ErrBadParams.Withf("a stream cannot be repeated, and so has no idempotency key")
	errKeySize   = codec.ErrBadParams.Withf("the idempotency key of a caller that has not proved who it is has %d random bytes", keySize)
	errKeyUsed   = codec.ErrBadParams.Withf("the idempotency key was used for another call")
)

// What a repetition is told that does not get the answer. None of it says that the call can be made again.
var (
	errDisplaced = codec.ErrOverloaded.Withf("the call runs, and %d later repetitions wait for its answer", mostRepetitions)
	errNotKept   = codec.ErrOverloaded.Withf("the call ran, and there was no room to remember its answer: see WithMemory")
)

// begin reports whether c, which has a key, is to run. Otherwise it is answered with what became of
// the first one, at once or later.
func (o *once) begin(c *incoming) (run bool) {
	m, refused := o.meet(c)
	switch {
	case refused != nil:
		c.s.calls.giveBack(c.cost(), c.nested())
		c.refuse(refused)
	case m == nil:
		return true
	case !o.await(m, c):
		c.onReader = true // it is the reader's goroutine
		c.rare.shares = true
		c.reply(m.result, m.abort)
	}
	return false
}

// meet returns the call that c repeats, or nil if it is the first of its key, or why it is neither.
func (o *once) meet(c *incoming) (*memory, *Abort) {
	w := c.s.owner
	switch {
	case c.stream:
		return nil, errKeyStream
	case !w.proved() && len(c.rare.key) != keySize:
		return nil, errKeySize
	}
	key := string(c.rare.key)
	if w.proved() { // the keys of others are not its own; without a proof the key is all there is
		key = w.name.proof + "\x00" + key
	}
	sum := sha256.Sum256(c.params)
	digest := [16]byte(sum[:])
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.forgetLocked(now)
	if m := o.calls[key]; m != nil {
		if m.function != c.function || m.digest != digest {
			return nil, errKeyUsed
		}
		return m, nil
	}
	m := &memory{key: key, owner: w, function: c.function, digest: digest, open: &unanswered{first: c, params: c.params}}
	m.size = heldRemember + buffer.Allocated(len(key))
	if w.durable == nil {
		w.durable = &durableShare{gate: &gate{free: o.running}}
	}
	if full := o.fullLocked(w, m.size, now); full != nil {
		return nil, full
	}
	if o.calls == nil {
		o.calls = make(map[string]*memory)
	}
	o.calls[key] = m
	o.owners.keep(w)
	o.countLocked(m, 1, m.size)
	c.rare.memory = m
	return nil, nil
}

// fullLocked returns why there is no room for one more call of w that holds size bytes, or nil.
func (o *once) fullLocked(w *owner, size int, now time.Time) *Abort {
	own := w.durable
	switch {
	case !o.fits(own.held, o.most.Messages, o.most.Bytes, size, o.share):
		return codec.OverloadedFor(untilForgotten(&own.answered, now), "the durable calls of this peer fill its share of what is remembered here: see WithMemory")
	case !o.fits(o.held, o.most.Messages, o.most.Bytes, size, 1):
		return codec.OverloadedFor(untilForgotten(&o.answered, now), "too many durable calls are remembered here: see WithMemory")
	}
	return nil
}

// fits reports whether a call more, of so many bytes, fits into a share of what may be remembered.
func (o *once) fits(held limits.Amount, messages, bytes, more int, share float64) bool {
	return (messages == 0 || held.Messages < max(int(share*float64(messages)), 1)) &&
		(bytes == 0 || held.Bytes+more <= int(share*float64(bytes)))
}

// untilForgotten returns how long it is until something of q will be forgotten.
func untilForgotten(q *fifo.Queue[*memory], now time.Time) time.Duration {
	if q.Len() == 0 {
		return time.Second // all of them run, and may end at any moment
	}
	return max((*q.Peek()).until.Sub(now), minRetryAfter)
}

// countLocked counts what m holds more.
func (o *once) countLocked(m *memory, messages, bytes int) {
	for _, held := range []*limits.Amount{&o.held, &m.owner.durable.held} {
		held.Messages += messages
		held.Bytes += bytes
	}
	m.owner.tally.Add(bytes)
}

// await lets c, a repetition, wait for the answer to m. It reports false if that is there.
func (o *once) await(m *memory, c *incoming) bool {
	if !c.nested() {
		c.s.calls.giveBack(uint64(c.size), false) // nobody needs its parameters
		c.size = 0
	}
	c.freeParams()
	c.s.arrived(c.held()) // before others may answer it
	o.mu.Lock()
	if m.answered {
		o.mu.Unlock()
		c.taken()
		return false
	}
	r := m.open
	c.rare.awaits = r
	r.waiting = append(r.waiting, c)
	var displaced *incoming
	if len(r.waiting) > mostRepetitions {
		displaced = r.waiting[0]
		r.leaveLocked(displaced)
	}
	o.mu.Unlock()
	if displaced != nil {
		displaced.handler.meter.ended(errDisplaced)
		displaced.awaited(nil, errDisplaced)
	}
	if c.s.ctx.Err() != nil { // whoever ended the session may have looked before
		o.leave(c)
	}
	return true
}

// leaveLocked takes a repetition out that waits.
func (r *unanswered) leaveLocked(c *incoming) {
	c.rare.awaits = nil
	r.waiting = slices.DeleteFunc(r.waiting, func(o *incoming) bool { return o == c })
}

// leave is called when the caller of c, which has a key, gives up, or its session ends.
func (o *once) leave(c *incoming) {
	o.mu.Lock()
	r := c.rare.awaits
	if r != nil {
		r.leaveLocked(c)
	}
	o.mu.Unlock()
	if r != nil {
		c.taken()
		c.s.calls.giveBack(c.cost(), c.nested())
	}
}

// awaited answers a repetition that has waited.
func (c *incoming) awaited(result []byte, a *Abort) {
	c.taken()
	c.s.calls.giveBack(c.cost(), c.nested())
	c.reply(result, a)
}

// run notes that the first call runs: from now on no answer to the key says that it can be repeated.
func (o *once) run(m *memory) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.open.params = nil
}

// answer notes what became of a call that has run, and answers the repetitions that wait for it.
func (o *once) answer(m *memory, result []byte, a *Abort) {
	o.mu.Lock()
	if m.answered {
		o.mu.Unlock()
		return
	}
	o.joinLocked(m)
	waiting := m.open.waiting
	m.answered, m.open = true, nil
	kept := o.rememberLocked(m, result, a)
	for _, c := range waiting {
		c.rare.awaits, c.rare.shares = nil, kept
	}
	o.mu.Unlock()
	for i, c := range waiting {
		if !kept && i == len(waiting)-1 { // the last one is most likely to be waited for
			c.awaited(result, a)
		} else {
			c.awaited(m.result, m.abort)
		}
	}
}

// rememberLocked keeps an answer, if there is room for it.
func (o *once) rememberLocked(m *memory, result []byte, a *Abort) (kept bool) {
	more := buffer.Allocated(len(result)) + heldByAbort(a)
	kept = more == 0 || o.fits(m.owner.durable.held, 0, o.most.Bytes, more, o.share) && o.fits(o.held, 0, o.most.Bytes, more, 1)
	if kept {
		m.result = bytes.Clone(result)
		if a != nil {
			m.abort = &Abort{Code: a.Code, Message: a.Message, Detail: bytes.Clone(a.Detail)}
		}
		m.size += more
		o.countLocked(m, 0, more)
	} else {
		m.abort = errNotKept
	}
	m.until = time.Now().Add(o.keep)
	o.answered.Push(m)
	m.owner.durable.answered.Push(m)
	o.scheduleLocked()
	return kept
}

// refuse forgets a call that did not run. If a repetition waits, that runs in its place.
func (o *once) refuse(m *memory) {
	o.mu.Lock()
	o.joinLocked(m)
	r := m.open
	if len(r.waiting) == 0 {
		o.dropLocked(m)
		o.mu.Unlock()
		return
	}
	next, params := r.waiting[0], r.params
	r.leaveLocked(next)
	r.first, next.rare.memory = next, m
	o.mu.Unlock()
	next.taken()
	next.params = params
	if !next.nested() {
		next.size, next.rare.returned = uint32(len(params)), uint32(len(params))
	}
	if err := next.s.enqueue(next); err != nil {
		next.s.calls.giveBack(next.cost(), next.nested())
		next.refuse(codec.AbortOf(err))
	}
}

// orphan lets a call that runs go on although its session has ended: for as long as its answer would
// be remembered. If too many do, the one that has for the longest time is canceled.
func (o *once) orphan(m *memory) {
	o.mu.Lock()
	r := m.open
	if r == nil || r.alone != nil {
		o.mu.Unlock()
		return
	}
	c := r.first
	r.alone = o.lonely.PushBack(m)
	r.lapse = time.AfterFunc(o.keep, func() { c.end(canceled) })
	var ends *incoming
	if o.ended || o.lonely.Len() > o.orphans {
		oldest := o.lonely.Front().Value.(*memory)
		ends = oldest.open.first
		o.joinLocked(oldest)
	}
	o.mu.Unlock()
	if ends != nil {
		ends.end(canceled)
	}
}

// joinLocked says that m is not, or no more, one of those that run on without a session.
func (o *once) joinLocked(m *memory) {
	if r := m.open; r != nil && r.alone != nil {
		r.lapse.Stop()
		o.lonely.Remove(r.alone)
		r.alone, r.lapse = nil, nil
	}
}

// dropLocked forgets m.
func (o *once) dropLocked(m *memory) {
	delete(o.calls, m.key)
	o.countLocked(m, -1, -m.size)
	o.owners.leave(m.owner)
}

// forgetLocked forgets those whose time is up.
func (o *once) forgetLocked(now time.Time) {
	for o.answered.Len() > 0 {
		m := *o.answered.Peek()
		if now.Before(m.until) {
			return
		}
		o.answered.Pop()
		m.owner.durable.answered.Pop() // which is the same: both are in one order
		o.dropLocked(m)
	}
}

// scheduleLocked sees to it that the answers are forgotten in time.
func (o *once) scheduleLocked() {
	if o.timer != nil || o.ended || o.answered.Len() == 0 {
		return
	}
	o.timer = time.AfterFunc(time.Until((*o.answered.Peek()).until), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.forgetLocked(time.Now())
		o.timer = nil
		o.scheduleLocked()
	})
}

// end ends the contexts of the calls that run: they outlive their sessions, but not the node.
func (o *once) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.timer != nil {
		o.timer.Stop()
	}
	for _, m := range o.calls {
		o.joinLocked(m)
		if m.open != nil {
			m.open.first.end(canceled)
		}
	}
}
