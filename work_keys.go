package asterisque

import "sync"

// keys is the order per key of one function, over all sessions: of the calls with the same key, one
// at a time runs or waits for a worker, and the others wait here in the order of their arrival. A
// key costs memory only while calls have it, and no goroutine.
type keys struct {
	mu     sync.Mutex
	last   map[uint64]*turn // guarded by mu, like the turns: which came last, by key
	nested int              // guarded by mu; calls within calls that are in the lines
}

// turn is the place of a call in the order of its key.
type turn struct {
	key    uint64 // these are fixed
	of     waiter
	nested bool // it is of a call within another one

	state turnState // guarded by the lock of the keys, as before and next

	// these belong to whoever has the call: the decoded parameters, in place of the others, and the
	// bytes of what they point to; nil if the handler decodes them
	held  uint32
	value any

	before, next *turn // before is nil for the one whose turn it is
}

// turnState says how far a turn has got.
//
//	outside ── enters ──▶ waiting ── begins ──▶ first
//	   │ └─────── begins ──────────────────────▶  │
//	   │                     │                    │
//	   └────── leaves ───────┴─────▶ left ◀───────┘
type turnState uint8

const (
	turnOutside turnState = iota // its call has yet to come
	turnWaiting                  // for the one before
	turnFirst                    // its call runs, or may
	turnLeft                     // its call is over, or was given up
)

// turnEvent is what may happen to a turn.
type turnEvent uint8

const (
	turnEnters turnEvent = iota // behind another one
	turnBegins                  // nobody is before it, or nobody any more
	turnLeaves
)

// next returns the state after e, or ok == false if e cannot happen in s.
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

func (t *turn) moveLocked(e turnEvent) (ok bool) {
	next, ok := t.state.next(e)
	if ok {
		t.state = next
	}
	return ok
}

// enter reports whether it is the turn t. Otherwise its call waits for that: leave will return it.
// If t is of a call within another one, holder is the one whose turn it is, for whose end that
// other call waits now.
func (k *keys) enter(t *turn) (first bool, holder waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.last[t.key]
	e := turnEnters
	if before == nil {
		e = turnBegins
	}
	if !t.moveLocked(e) {
		return false, nil // its call has been given up
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

// leave takes t out of the order of its key. If it was its turn, it returns the call whose turn it
// is now, or nil, and whether a call within another one waits behind that.
func (k *keys) leave(t *turn) (next waiter, behind bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := t.state
	if !t.moveLocked(turnLeaves) || was == turnOutside { // and now it will never enter
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
