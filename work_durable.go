package asterisque

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/limits"
)

// durableAnswers remember the durable calls of all peers by their idempotency keys, so that each of
// them runs once however often it arrives: a repetition waits for the first one, and gets its
// answer.
//
// Nothing of that is for free, so each owner has a share of what is remembered, and may have so
// many durable calls run as a session has workers, those included whose sessions have ended.
type durableAnswers struct {
	owners   *owners       // these are fixed
	lifetime time.Duration // how long an answer is remembered, and a call runs on without a session
	running  int           // how many durable calls of one owner run at once

	mu      sync.Mutex
	calls   map[string]*durableAnswer // guarded by mu, as all below
	shares  map[*owner]*durableShare
	room    durableRoom
	orphans orphans
	timer   *time.Timer // forgets; nil while nothing is answered
	ended   bool
}

// durablePlan says how much is remembered of durable calls.
type durablePlan struct {
	lifetime time.Duration
	most     limits.Amount
	share    float64 // of that, for each owner
	running  int     // how many durable calls of one owner run at once
	workers  int     // of the node; 0: any number
}

// init prepares o for a node.
func (o *durableAnswers) init(p durablePlan, owners *owners) {
	o.owners, o.lifetime, o.running = owners, p.lifetime, p.running
	o.room.most, o.room.share = p.most, p.share
	o.orphans.lifetime, o.orphans.mostOfOwner = p.lifetime, p.running
	o.orphans.most = ownersWithin * p.running
	if p.workers > 0 {
		o.orphans.most = max(p.workers/2, 1) // the other half is for those who are there
	}
}

// ownersWithin is how many owners may have all of what is theirs at once.
const ownersWithin = 8

// What a key is refused for.
var (
	errKeyStream = codec.ErrBadParams.Withf("a stream cannot be repeated, and so has no idempotency key")
	errKeySize   = codec.ErrBadParams.Withf("the idempotency key of a caller that has not proved who it is has %d random bytes", keySize)
	errKeyUsed   = codec.ErrBadParams.Withf("the idempotency key was used for another call, or with another value codec: draw a key for each call, and repeat it with the same codec")
)

// keySize is that of an idempotency key, in bytes: enough that nobody guesses one.
const keySize = 16

// What a repetition is told that does not get the answer. None of it says that the call can be made
// again.
var (
	errDisplaced = codec.ErrOverloaded.Withf("the call runs, and %d later repetitions wait for its answer", mostRepetitions)
	errNotKept   = codec.ErrOverloaded.Withf("the call ran, and there was no room to remember its answer: see DurableAnswers")
)

// durableOpen is what tells one durable call from others.
type durableOpen struct {
	owner    *owner
	function uint16
	stream   bool
	key      []byte
	codec    string // by its name
	params   []byte
}

// name returns the name under which the call is known: the keys of others are not the owner's, and
// without a proof of who it is the key is all there is.
func (c *durableOpen) name() string {
	if c.owner.proved() {
		return c.owner.name.proof + "\x00" + string(c.key)
	}
	return string(c.key)
}

// digest returns a digest of the parameters: the same bytes are others in another codec.
func (c *durableOpen) digest() (d [16]byte) {
	h := sha256.New()
	h.Write(append([]byte{byte(len(c.codec))}, c.codec...)) // which has at most 32 bytes
	h.Write(c.params)
	copy(d[:], h.Sum(nil))
	return d
}

// enter returns the call that c repeats, or nil if it is the first of its key, or why it is
// neither.
func (o *durableAnswers) enter(open durableOpen, c durableJob) (*durableAnswer, *Abort) {
	switch {
	case open.stream:
		return nil, errKeyStream
	case !open.owner.proved() && len(open.key) != keySize:
		return nil, errKeySize
	}
	name := open.name()
	digest := open.digest()
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.forgetLocked(now)
	if m := o.calls[name]; m != nil {
		if m.function != open.function || m.digest != digest {
			return nil, errKeyUsed
		}
		return m, nil
	}
	m := &durableAnswer{key: name, share: o.shareLocked(open.owner), function: open.function, digest: digest}
	m.pending = &pendingAnswer{call: c, params: open.params}
	return nil, o.addLocked(m, c, now)
}

// shareLocked returns the share of an owner.
func (o *durableAnswers) shareLocked(w *owner) *durableShare {
	s := o.shares[w]
	if s == nil {
		s = &durableShare{owner: w, gate: &gate{ofOwner: true, free: o.running}}
	}
	return s
}

// addLocked remembers m, whose first call is c, or returns why there is no room for it.
func (o *durableAnswers) addLocked(m *durableAnswer, c durableJob, now time.Time) *Abort {
	m.size = heldRemember + buffer.Allocated(len(m.key))
	if refused := o.room.refusal(m.share, m.size, now); refused != nil {
		return refused
	}
	if o.calls == nil {
		o.calls, o.shares = make(map[string]*durableAnswer), make(map[*owner]*durableShare)
	}
	o.calls[m.key], o.shares[m.share.owner] = m, m.share
	o.owners.retain(m.share.owner)
	o.room.count(m, 1, m.size)
	c.role().first = m
	return nil
}

// begin notes that the first call runs: from now on no answer to the key says that it can be
// repeated, unless what stands around the handler refuses it.
func (o *durableAnswers) begin(m *durableAnswer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.moveLocked(durableBegins)
	m.pending.params = nil
}

// answer notes what became of a call that has run, and answers the repetitions that wait for it.
func (o *durableAnswers) answer(m *durableAnswer, result []byte, a *Abort) {
	o.mu.Lock()
	if m.pending == nil {
		o.mu.Unlock()
		return
	}
	o.orphans.remove(m)
	waiting, open := m.pending.waiting, m.pending.call.role().open
	m.pending = nil
	kept := o.endLocked(m, result, a, open)
	for _, c := range waiting {
		r := c.role()
		r.repeats, r.shared = nil, kept
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

// endLocked notes what became of a call, and reports whether the answer is kept: an error is not if
// what stands around the handler did not let it run, or wants it so.
func (o *durableAnswers) endLocked(m *durableAnswer, result []byte, a *Abort, open bool) (kept bool) {
	if a != nil && (open || a.Ran == codec.Refused) {
		m.moveLocked(durableDropped)
		m.abort = a
		o.dropLocked(m)
		return false
	}
	m.moveLocked(durableEnds)
	return o.rememberLocked(m, result, a)
}

// forgetAnswer lets the outcome of c not be remembered, if it is an error.
func (o *durableAnswers) forgetAnswer(c durableJob) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.role().open = true
}

// rememberLocked keeps an answer, if there is room for it.
func (o *durableAnswers) rememberLocked(m *durableAnswer, result []byte, a *Abort) (kept bool) {
	bytes := weightOf(result, a)
	if kept = o.room.fitsAnswer(m.share, bytes); kept {
		m.keepLocked(result, a)
		m.size += bytes
		o.room.count(m, 0, bytes)
	} else {
		m.abort = errNotKept
	}
	m.until = time.Now().Add(o.lifetime)
	o.room.queue(m)
	o.scheduleLocked()
	return kept
}

// handOn forgets a call that did not run. If a repetition waits, that runs in its place.
func (o *durableAnswers) handOn(m *durableAnswer) {
	o.mu.Lock()
	o.orphans.remove(m)
	p := m.pending
	if len(p.waiting) == 0 {
		m.moveLocked(durableDropped)
		o.dropLocked(m)
		o.mu.Unlock()
		return
	}
	m.moveLocked(durablePasses)
	next, params := p.waiting[0], p.params
	p.removeLocked(next)
	p.call, next.role().first = next, m
	o.mu.Unlock()
	next.takeOver(params)
}

// await lets c, a repetition, wait for the answer to m. It reports false if that is there. One that
// finds no place any more is returned.
func (o *durableAnswers) await(m *durableAnswer, c durableJob) (waits bool, displaced durableJob) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m.pending == nil {
		return false, nil
	}
	return true, m.pending.addLocked(c)
}

// withdraw takes c out, if it is a repetition that waits, because its caller gave up or its session
// ended. It reports whether it is one.
func (o *durableAnswers) withdraw(c durableJob) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := c.role().repeats
	if p == nil {
		return false
	}
	p.removeLocked(c)
	return true
}

// runOn lets a call that runs go on although its session has ended.
func (o *durableAnswers) runOn(m *durableAnswer) {
	o.mu.Lock()
	c := o.orphans.add(m, o.ended)
	o.mu.Unlock()
	if c != nil {
		c.cancel()
	}
}

// dropLocked forgets m.
func (o *durableAnswers) dropLocked(m *durableAnswer) {
	delete(o.calls, m.key)
	o.room.count(m, -1, -m.size)
	if m.share.held.Messages == 0 {
		delete(o.shares, m.share.owner)
	}
	o.owners.release(m.share.owner)
}

// forgetLocked forgets those whose time is up.
func (o *durableAnswers) forgetLocked(now time.Time) {
	for m := o.room.lapsed(now); m != nil; m = o.room.lapsed(now) {
		m.moveLocked(durableLapses)
		o.dropLocked(m)
	}
}

// scheduleLocked sees to it that the answers are forgotten in time.
func (o *durableAnswers) scheduleLocked() {
	if o.timer != nil || o.ended || o.room.answered.Len() == 0 {
		return
	}
	o.timer = time.AfterFunc(time.Until((*o.room.answered.Peek()).until), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.forgetLocked(time.Now())
		o.timer = nil
		o.scheduleLocked()
	})
}

// end ends the contexts of the calls that run: they outlive their sessions, but not the node.
func (o *durableAnswers) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.timer != nil {
		o.timer.Stop()
	}
	for _, m := range o.calls {
		o.orphans.remove(m)
		if m.pending != nil {
			m.moveLocked(durableCancel)
			m.pending.call.cancel()
		}
	}
}
