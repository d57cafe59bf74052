package dispatch

import "sync"

// KeyedOrder is the order per key of one function, over all sessions: of the calls with the same
// key, one at a time runs or waits for a worker, and all later ones wait here in the order of their
// arrival. A key costs memory only while it has calls, and no goroutine.
type KeyedOrder struct {
	mu     sync.Mutex
	last   map[uint64]*Turn // guarded by mu, like the turns: the latest, by key
	nested int              // guarded by mu; nested calls in the lines
}

// Len returns the number of keys with calls.
func (k *KeyedOrder) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.last)
}

// Turn is the place of a call in the order of its key.
type Turn struct {
	key    uint64 // these are fixed
	of     Job
	nested bool // of a nested call

	state turnState // guarded by the lock of the keys, as before and next

	// owned by the goroutine of the call: the decoded parameters, in place of the encoded ones; nil
	// if the handler decodes them
	Value any

	before, next *Turn // before is nil for the first
}

// NewTurn returns the turn of a call.
func NewTurn(key uint64, of Job) *Turn {
	return &Turn{key: key, of: of, nested: of.Task().Nested}
}

// SameKey reports whether t, which may be nil, has this key.
func (t *Turn) SameKey(key uint64) bool { return t != nil && t.key == key }

// turnState is the state of a turn.
//
//	outside ── enters ──▶ waiting ── begins ──▶ first
//	   │ └─────── begins ──────────────────────▶  │
//	   │                     │                    │
//	   └────── leaves ───────┴─────▶ left ◀───────┘
type turnState uint8

const (
	turnOutside turnState = iota // its call has not arrived
	turnWaiting                  // for the turn before it
	turnFirst                    // its call runs, or may run
	turnLeft                     // its call has ended, or was canceled
)

// turnEvent is an event of a turn.
type turnEvent uint8

const (
	turnEnters turnEvent = iota // behind another one
	turnBegins                  // no turn is before it any more
	turnLeaves
)

// next returns the state after e. It returns ok == false for an e that is impossible in s.
func (s turnState) next(e turnEvent) (_ turnState, ok bool) {
	switch e {
	case turnEnters:
		return turnWaiting, s == turnOutside
	case turnBegins:
		return turnFirst, s == turnOutside || s == turnWaiting
	case turnLeaves:
		return turnLeft, s != turnLeft
	}
	return s, false
}

func (t *Turn) moveLocked(e turnEvent) (ok bool) {
	next, ok := t.state.next(e)
	if ok {
		t.state = next
	}
	return ok
}

// queue queues j for its turn t, and then for a worker.
func (k *KeyedOrder) queue(j Job, t *Turn) {
	first, holder := k.enter(t)
	switch {
	case first:
		j.Dispatcher().queue(j)
	case holder != nil:
		holder.Dispatcher().lend(holder)
	}
}

// enter reports whether t is the first turn of its key. Otherwise its call waits until leave
// returns it. If t is of a nested call, holder is the first turn's call, which the nested call
// waits for.
func (k *KeyedOrder) enter(t *Turn) (first bool, holder Job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		k.last = make(map[uint64]*Turn)
	}
	before := k.last[t.key]
	e := turnEnters
	if before == nil {
		e = turnBegins
	}
	if !t.moveLocked(e) {
		return false, nil // its call has been canceled
	}
	t.before, k.last[t.key] = before, t
	if t.nested {
		k.nested++
	}
	if before == nil {
		return true, nil
	}
	before.next = t
	if t.nested {
		for before.before != nil {
			before = before.before
		}
		return false, before.of
	}
	return false, nil
}

// leave removes t from the order of its key. If it was the first turn, leave returns the call of
// the next one, or nil, and whether a nested call waits behind that.
func (k *KeyedOrder) leave(t *Turn) (next Job, behind bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := t.state
	if !t.moveLocked(turnLeaves) || was == turnOutside { // and it cannot enter from now on
		return nil, false
	}
	if t.nested {
		k.nested--
	}
	switch {
	case t.next != nil:
		t.next.before = t.before
	case t.before != nil:
		k.last[t.key] = t.before
	default:
		delete(k.last, t.key)
	}
	if t.before != nil {
		t.before.next = t.next
		return nil, false
	}
	first := t.next
	if first == nil {
		return nil, false
	}
	first.moveLocked(turnBegins)
	for o := first.next; k.nested > 0 && o != nil && !behind; o = o.next {
		behind = o.nested
	}
	return first.of, behind
}
