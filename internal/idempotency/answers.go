// Package idempotency remembers the answers to durable calls, so that each of them runs once
// however often it arrives.
//
// Each durable call of a peer passes [Answers.Enter] with its key. The first [Call] of a key runs:
// Start and Finish follow, or HandOn if it does not run. Each repetition waits by Await for the
// answer of the first one. A first call outlives its session by Orphan, and a repetition leaves by
// Withdraw.
package idempotency

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/limits"
)

// Answers remembers the durable calls of all peers by their idempotency keys, so that each
// of them runs once however often it arrives: a repetition waits for the first call, and gets its
// answer.
//
// Memory and workers are bounded: each owner has a share of the remembered answers, and of running
// durable calls as many as a session has workers, including calls without a session.
type Answers struct {
	owners   *quota.Owners // these are fixed
	lifetime time.Duration // of an answer, and of a call without a session
	running  int           // bound of running durable calls of one owner

	mu      sync.Mutex
	calls   map[string]*Answer // guarded by mu, as all below
	shares  map[*quota.Owner]*share
	room    room
	orphans orphanedCalls
	timer   *time.Timer // removes expired answers; nil without answers
	ended   bool
}

// Plan holds the bounds of [Answers].
type Plan struct {
	Lifetime time.Duration
	Most     limits.Amount
	Share    float64 // of most, for each owner
	Running  int     // bound of running durable calls of one owner
	Workers  int     // of the node; 0: any number
}

// Init prepares o for a node.
func (o *Answers) Init(p Plan, owners *quota.Owners) {
	o.owners, o.lifetime, o.running = owners, p.Lifetime, p.Running
	o.room.most, o.room.share = p.Most, p.Share
	o.orphans.lifetime, o.orphans.mostOfOwner = p.Lifetime, p.Running
	o.orphans.most = FullOwners * p.Running
	if p.Workers > 0 {
		o.orphans.most = max(p.Workers/2, 1) // the other half is for calls with a session
	}
}

// FullOwners is the number of owners that may use their whole share at once.
const FullOwners = 8

// Errors that reject a key. ErrStream is also that of the caller of a stream.
var (
	ErrStream  = codec.ErrBadParams.Withf("a stream cannot be repeated, and so has no idempotency key")
	errKeySize = codec.ErrBadParams.Withf("the idempotency key of a caller without a proved identity has %d random bytes", KeySize)
	errKeyUsed = codec.ErrBadParams.Withf("the idempotency key was used for another call, or with another value codec: draw a key for each call, and repeat it with the same codec")
)

// KeySize is the size of an idempotency key, in bytes, that cannot be guessed.
const KeySize = 16

// ErrDisplaced and errNotKept are the errors of a repetition that does not get the answer. None of
// them is Repeatable.
var (
	ErrDisplaced = codec.ErrOverloaded.Withf("the call runs, and %d later repetitions wait for its answer", mostRepetitions)
	errNotKept   = codec.ErrOverloaded.Withf("the call ran, and there was no room to remember its answer: see DurableAnswers")
)

// Identity identifies a durable call.
type Identity struct {
	Owner    *quota.Owner
	Function uint16
	Stream   bool
	Key      []byte
	Codec    string // name of the codec
	Params   []byte
}

// name returns the name of the call. Each owner with a proved identity has keys of its own;
// otherwise the key alone is the name.
func (c *Identity) name() string {
	if c.Owner.Proved() {
		return c.Owner.Name.Proof + "\x00" + string(c.Key)
	}
	return string(c.Key)
}

// digest returns a digest of codec and parameters: in another codec, equal bytes are other
// parameters.
func (c *Identity) digest() (d [16]byte) {
	h := sha256.New()
	h.Write(append([]byte{byte(len(c.Codec))}, c.Codec...)) // at most 32 bytes
	h.Write(c.Params)
	copy(d[:], h.Sum(nil))
	return d
}

// Enter returns the call that c repeats, or nil if c is the first of its key, or an error if it is
// neither.
func (o *Answers) Enter(open Identity, c Call) (*Answer, *codec.Abort) {
	switch {
	case open.Stream:
		return nil, ErrStream
	case !open.Owner.Proved() && len(open.Key) != KeySize:
		return nil, errKeySize
	}
	name := open.name()
	digest := open.digest()
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.forgetLocked(now)
	if m := o.calls[name]; m != nil {
		if m.function != open.Function || m.digest != digest {
			return nil, errKeyUsed
		}
		return m, nil
	}
	m := &Answer{key: name, share: o.shareLocked(open.Owner), function: open.Function, digest: digest}
	m.pending = &pendingAnswer{call: c, params: open.Params}
	return nil, o.addLocked(m, c, now)
}

// shareLocked returns the share of an owner.
func (o *Answers) shareLocked(w *quota.Owner) *share {
	s := o.shares[w]
	if s == nil {
		s = &share{owner: w, limit: dispatch.NewOwnerLimit(o.running)}
	}
	return s
}

// addLocked remembers m, with c as its first call, or returns an error if a bound is reached.
func (o *Answers) addLocked(m *Answer, c Call, now time.Time) *codec.Abort {
	m.size = flow.Held(len(m.key))
	if refused := o.room.refusal(m.share, m.size, now); refused != nil {
		return refused
	}
	if o.calls == nil {
		o.calls, o.shares = make(map[string]*Answer), make(map[*quota.Owner]*share)
	}
	o.calls[m.key], o.shares[m.share.owner] = m, m.share
	o.owners.Retain(m.share.owner)
	o.room.count(m, 1, m.size)
	c.Role().First = m
	return nil
}

// Start records that the first call runs: from now on no answer to the key is Repeatable, unless an
// interceptor rejects the call.
func (o *Answers) Start(m *Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.moveLocked(begins)
	m.pending.params = nil
}

// Finish records the outcome of a call that has run, and answers the repetitions that wait for it.
func (o *Answers) Finish(m *Answer, result []byte, a *codec.Abort) {
	o.mu.Lock()
	if m.pending == nil {
		o.mu.Unlock()
		return
	}
	o.orphans.remove(m)
	waiting, open := m.pending.waiting, m.pending.call.Role().open
	m.pending = nil
	kept := o.endLocked(m, result, a, open)
	for _, c := range waiting {
		r := c.Role()
		r.repeats, r.Shared = nil, kept
	}
	o.mu.Unlock()
	for i, c := range waiting {
		if !kept && i == len(waiting)-1 { // the last one most likely has a waiting caller
			c.Awaited(result, a)
		} else {
			c.Awaited(m.Result, m.Abort)
		}
	}
}

// endLocked records the outcome of a call, and reports whether the answer is kept. An error is not
// kept if an interceptor has rejected the call, or has called ForgetAnswer.
func (o *Answers) endLocked(m *Answer, result []byte, a *codec.Abort, open bool) (kept bool) {
	if a != nil && (open || a.Ran == codec.Refused) {
		m.moveLocked(dropped)
		m.Abort = a
		o.dropLocked(m)
		return false
	}
	m.moveLocked(ends)
	return o.rememberLocked(m, result, a)
}

// ForgetAnswer makes the outcome of c be forgotten if it is an error.
func (o *Answers) ForgetAnswer(c Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.Role().open = true
}

// rememberLocked keeps an answer, if the bounds allow it.
func (o *Answers) rememberLocked(m *Answer, result []byte, a *codec.Abort) (kept bool) {
	bytes := weightOf(result, a)
	if kept = o.room.fitsAnswer(m.share, bytes); kept {
		m.keepLocked(result, a)
		m.size += bytes
		o.room.count(m, 0, bytes)
	} else {
		m.Abort = errNotKept
	}
	m.until = time.Now().Add(o.lifetime)
	o.room.queue(m)
	o.scheduleLocked()
	return kept
}

// HandOn removes a call that did not run. If a repetition waits, that runs in its place.
func (o *Answers) HandOn(m *Answer) {
	o.mu.Lock()
	o.orphans.remove(m)
	p := m.pending
	if len(p.waiting) == 0 {
		m.moveLocked(dropped)
		o.dropLocked(m)
		o.mu.Unlock()
		return
	}
	m.moveLocked(passes)
	next, params := p.waiting[0], p.params
	p.removeLocked(next)
	p.call, next.Role().First = next, m
	o.mu.Unlock()
	next.TakeOver(params)
}

// Await queues c, a repetition, for the answer to m. It returns false if the answer is present.
// displaced is a repetition that lost its place.
func (o *Answers) Await(m *Answer, c Call) (waits bool, displaced Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m.pending == nil {
		return false, nil
	}
	return true, m.pending.addLocked(c)
}

// Withdraw removes c, if it is a waiting repetition, because its caller has canceled or its session
// has ended. It reports whether it is one.
func (o *Answers) Withdraw(c Call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := c.Role().repeats
	if p == nil {
		return false
	}
	p.removeLocked(c)
	return true
}

// Orphan keeps a running call after the end of its session.
func (o *Answers) Orphan(m *Answer) {
	o.mu.Lock()
	c := o.orphans.add(m, o.ended)
	o.mu.Unlock()
	if c != nil {
		c.Cancel()
	}
}

// dropLocked removes m.
func (o *Answers) dropLocked(m *Answer) {
	delete(o.calls, m.key)
	o.room.count(m, -1, -m.size)
	if m.share.held.Messages == 0 {
		delete(o.shares, m.share.owner)
	}
	o.owners.Release(m.share.owner)
}

// forgetLocked removes the expired answers.
func (o *Answers) forgetLocked(now time.Time) {
	for m := o.room.lapsed(now); m != nil; m = o.room.lapsed(now) {
		m.moveLocked(lapses)
		o.dropLocked(m)
	}
}

// scheduleLocked starts the timer that removes expired answers.
func (o *Answers) scheduleLocked() {
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

// End cancels the running calls: they outlive their sessions, but not the node.
func (o *Answers) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.timer != nil {
		o.timer.Stop()
	}
	for _, m := range o.calls {
		o.orphans.remove(m)
		if m.pending != nil {
			m.moveLocked(cancels)
			m.pending.call.Cancel()
		}
	}
}
