package asterisque

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/limits"
)

// once remembers the durable calls of all peers by their idempotency keys, so that each of them
// runs once however often it arrives: a repetition waits for the first one, and gets its answer.
//
// Nothing of that is for free, so each owner has a share of what is remembered, and may have so
// many durable calls run as a session has workers, those included whose sessions have ended.
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
	// of *memory: those whose sessions have ended while they ran, in that order
	lonely list.List
	held   limits.Amount
	timer  *time.Timer // forgets; nil while nothing is answered
	ended  bool
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
	alone    int                 // how many of them run on without a session
}

// memory is what is known of one call.
type memory struct {
	key      string // these are fixed
	owner    *owner
	function uint16
	digest   [16]byte // of the parameters

	size   int // bytes that it holds; guarded by the lock of once, as all below
	result []byte
	abort  *Abort
	until  time.Time   // then it is forgotten
	open   *unanswered // nil once it is answered
}

// unanswered is what is known of a call only until it is answered.
type unanswered struct {
	first   *served       // the call that waits to run, or runs
	params  []byte        // of it, until it runs
	waiting []*served     // repetitions, the oldest first
	alone   *list.Element // of once.lonely; nil while it has its session
	lapse   *time.Timer   // ends the context of one that is alone
}

// What a key is refused for.
var (
	errKeyStream = codec.ErrBadParams.Withf("a stream cannot be repeated, and so has no idempotency key")
	errKeySize   = codec.ErrBadParams.Withf("the idempotency key of a caller that has not proved who it is has %d random bytes", keySize)
	errKeyUsed   = codec.ErrBadParams.Withf("the idempotency key was used for another call")
)

// What a repetition is told that does not get the answer. None of it says that the call can be made
// again.
var (
	errDisplaced = codec.ErrOverloaded.Withf("the call runs, and %d later repetitions wait for its answer", mostRepetitions)
	errNotKept   = codec.ErrOverloaded.Withf("the call ran, and there was no room to remember its answer: see DurableAnswers")
)

// begin reports whether c, which has a key, is to run. Otherwise it is answered with what became of
// the first one, at once or later.
func (o *once) begin(c *served) (run bool) {
	m, refused := o.meet(c)
	switch {
	case refused != nil:
		c.s.calls.giveBack(c.cost(), c.work.nested)
		c.refuse(refused)
	case m == nil:
		return true
	case !o.await(m, c):
		c.work.byReader = true // it is the reader's goroutine
		c.rare.shares = true
		c.reply(m.result, m.abort)
	}
	return false
}

// meet returns the call that c repeats, or nil if it is the first of its key, or why it is neither.
func (o *once) meet(c *served) (*memory, *Abort) {
	w := c.s.owner
	switch {
	case c.work.windowed:
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
		if m.function != c.handler.number || m.digest != digest {
			return nil, errKeyUsed
		}
		return m, nil
	}
	m := &memory{key: key, owner: w, function: c.handler.number, digest: digest, open: &unanswered{first: c, params: c.params}}
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

// run notes that the first call runs: from now on no answer to the key says that it can be
// repeated.
func (o *once) run(m *memory) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.open.params = nil
}

// answer notes what became of a call that has run, and answers the repetitions that wait for it.
func (o *once) answer(m *memory, result []byte, a *Abort) {
	o.mu.Lock()
	if m.open == nil {
		o.mu.Unlock()
		return
	}
	o.joinLocked(m)
	waiting := m.open.waiting
	m.open = nil
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
	next.countOut()
	next.params = params
	if !next.work.nested {
		next.work.size, next.rare.returned = uint32(len(params)), uint32(len(params))
	}
	if next.handler.key != nil {
		// as its key may block, or end the goroutine, which is that of somebody else; it ends by
		// itself
		go next.runInPlace()
		return
	}
	next.runInPlace()
}

// runInPlace lets c run in the place of another one, which did not.
func (c *served) runInPlace() {
	if err := c.s.enqueue(c, (*Session).turnBackNext); err != nil {
		c.s.turnBackNext(c, codec.AbortOf(err))
	}
}

// turnBackNext refuses c, which was about to run in the place of another one.
func (s *Session) turnBackNext(c *served, a *Abort) {
	s.calls.giveBack(c.cost(), c.work.nested)
	c.refuse(a)
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
