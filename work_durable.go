package asterisque

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/limits"
)

// durableAnswers remembers the durable calls of all peers by their idempotency keys, so that each
// of them runs once however often it arrives: a repetition waits for the first call, and gets its
// answer.
//
// Memory and workers are bounded: each owner has a share of the remembered answers, and of running
// durable calls as many as a session has workers, including calls without a session.
type durableAnswers struct {
	owners   *quota.Owners // these are fixed
	lifetime time.Duration // of an answer, and of a call without a session
	running  int           // bound of running durable calls of one owner

	mu      sync.Mutex
	calls   map[string]*durableAnswer // guarded by mu, as all below
	shares  map[*quota.Owner]*durableShare
	room    durableRoom
	orphans orphanedCalls
	timer   *time.Timer // removes expired answers; nil without answers
	ended   bool
}

// durablePlan holds the bounds for durable calls.
type durablePlan struct {
	lifetime time.Duration
	most     limits.Amount
	share    float64 // of most, for each owner
	running  int     // bound of running durable calls of one owner
	workers  int     // of the node; 0: any number
}

// init prepares o for a node.
func (o *durableAnswers) init(p durablePlan, owners *quota.Owners) {
	o.owners, o.lifetime, o.running = owners, p.lifetime, p.running
	o.room.most, o.room.share = p.most, p.share
	o.orphans.lifetime, o.orphans.mostOfOwner = p.lifetime, p.running
	o.orphans.most = ownersWithin * p.running
	if p.workers > 0 {
		o.orphans.most = max(p.workers/2, 1) // the other half is for calls with a session
	}
}

// ownersWithin is the number of owners that may use their whole share at once.
const ownersWithin = 8

// Errors that reject a key.
var (
	errKeyStream = codec.ErrBadParams.Withf("a stream cannot be repeated, and so has no idempotency key")
	errKeySize   = codec.ErrBadParams.Withf("the idempotency key of a caller without a proved identity has %d random bytes", keySize)
	errKeyUsed   = codec.ErrBadParams.Withf("the idempotency key was used for another call, or with another value codec: draw a key for each call, and repeat it with the same codec")
)

// keySize is the size of an idempotency key, in bytes, that cannot be guessed.
const keySize = 16

// Errors of a repetition that does not get the answer. None of them is Repeatable.
var (
	errDisplaced = codec.ErrOverloaded.Withf("the call runs, and %d later repetitions wait for its answer", mostRepetitions)
	errNotKept   = codec.ErrOverloaded.Withf("the call ran, and there was no room to remember its answer: see DurableAnswers")
)

// durableIdentity identifies a durable call.
type durableIdentity struct {
	owner    *quota.Owner
	function uint16
	stream   bool
	key      []byte
	codec    string // name of the codec
	params   []byte
}

// name returns the name of the call. Each owner with a proved identity has keys of its own;
// otherwise the key alone is the name.
func (c *durableIdentity) name() string {
	if c.owner.Proved() {
		return c.owner.Name.Proof + "\x00" + string(c.key)
	}
	return string(c.key)
}

// digest returns a digest of codec and parameters: in another codec, equal bytes are other
// parameters.
func (c *durableIdentity) digest() (d [16]byte) {
	h := sha256.New()
	h.Write(append([]byte{byte(len(c.codec))}, c.codec...)) // at most 32 bytes
	h.Write(c.params)
	copy(d[:], h.Sum(nil))
	return d
}

// enter returns the call that c repeats, or nil if c is the first of its key, or an error if it is
// neither.
func (o *durableAnswers) enter(open durableIdentity, c durableJob) (*durableAnswer, *Abort) {
	switch {
	case open.stream:
		return nil, errKeyStream
	case !open.owner.Proved() && len(open.key) != keySize:
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
func (o *durableAnswers) shareLocked(w *quota.Owner) *durableShare {
	s := o.shares[w]
	if s == nil {
		s = &durableShare{owner: w, limit: dispatch.NewOwnerLimit(o.running)}
	}
	return s
}

// addLocked remembers m, with c as its first call, or returns an error if a bound is reached.
func (o *durableAnswers) addLocked(m *durableAnswer, c durableJob, now time.Time) *Abort {
	m.size = heldRemember + buffer.Allocated(len(m.key))
	if refused := o.room.refusal(m.share, m.size, now); refused != nil {
		return refused
	}
	if o.calls == nil {
		o.calls, o.shares = make(map[string]*durableAnswer), make(map[*quota.Owner]*durableShare)
	}
	o.calls[m.key], o.shares[m.share.owner] = m, m.share
	o.owners.Retain(m.share.owner)
	o.room.count(m, 1, m.size)
	c.role().first = m
	return nil
}

// begin records that the first call runs: from now on no answer to the key is Repeatable, unless an
// interceptor rejects the call.
func (o *durableAnswers) begin(m *durableAnswer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.moveLocked(durableBegins)
	m.pending.params = nil
}

// answer records the outcome of a call that has run, and answers the repetitions that wait for it.
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
		if !kept && i == len(waiting)-1 { // the last one most likely has a waiting caller
			c.awaited(result, a)
		} else {
			c.awaited(m.result, m.abort)
		}
	}
}

// endLocked records the outcome of a call, and reports whether the answer is kept. An error is not
// kept if an interceptor has rejected the call, or has called ForgetAnswer.
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

// forgetAnswer makes the outcome of c be forgotten if it is an error.
func (o *durableAnswers) forgetAnswer(c durableJob) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.role().open = true
}

// rememberLocked keeps an answer, if the bounds allow it.
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

// handOn removes a call that did not run. If a repetition waits, that runs in its place.
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

// await queues c, a repetition, for the answer to m. It returns false if the answer is present.
// displaced is a repetition that lost its place.
func (o *durableAnswers) await(m *durableAnswer, c durableJob) (waits bool, displaced durableJob) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m.pending == nil {
		return false, nil
	}
	return true, m.pending.addLocked(c)
}

// withdraw removes c, if it is a waiting repetition, because its caller has canceled or its session
// has ended. It reports whether it is one.
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

// runOn keeps a running call after the end of its session.
func (o *durableAnswers) runOn(m *durableAnswer) {
	o.mu.Lock()
	c := o.orphans.add(m, o.ended)
	o.mu.Unlock()
	if c != nil {
		c.cancel()
	}
}

// dropLocked removes m.
func (o *durableAnswers) dropLocked(m *durableAnswer) {
	delete(o.calls, m.key)
	o.room.count(m, -1, -m.size)
	if m.share.held.Messages == 0 {
		delete(o.shares, m.share.owner)
	}
	o.owners.Release(m.share.owner)
}

// forgetLocked removes the expired answers.
func (o *durableAnswers) forgetLocked(now time.Time) {
	for m := o.room.lapsed(now); m != nil; m = o.room.lapsed(now) {
		m.moveLocked(durableLapses)
		o.dropLocked(m)
	}
}

// scheduleLocked starts the timer that removes expired answers.
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

// end cancels the running calls: they outlive their sessions, but not the node.
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
