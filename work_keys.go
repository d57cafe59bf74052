package asterisque

import (
	"reflect"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
)

// keys is the order per key of one function, over all sessions: of the calls with the same key, one
// at a time runs or waits for a worker, and the others wait here in the order of their arrival. A
// key costs memory only while calls have it, and no goroutine.
type keys struct {
	// these are fixed
	of func(values codec.Values, params []byte) (key uint64, value any, err error)
	// of what value points to; nil if there is none
	params reflect.Type
	// bytes of params that need not be weighed
	free int

	mu     sync.Mutex
	last   map[uint64]*incoming // guarded by mu, like the turns of its calls: who came last, by key
	nested int                  // guarded by mu; calls within calls that are in the lines
}

// turn is the place of a call in the line of its key.
type turn struct {
	key          uint64
	before, next *incoming // before is nil for the one whose turn it is
	in           bool      // it is in the line
	over         bool      // it has left
	// the decoded parameters, in place of the others; nil if the handler decodes them
	value any
	held  uint32 // bytes of what value points to
}

// name finds out the key of c. An error refuses the call.
func (k *keys) name(c *incoming) error {
	held, err := k.weigh(c)
	if err != nil {
		return err
	}
	c.s.calls.hold(held)
	defer c.s.calls.hold(-held)
	key, value, err := k.of(c.s.codec, c.params)
	if err != nil {
		return codecError(codec.BadParams, c.function, c.handler.name, "parameters", err)
	}
	if c.withinSame(&key) {
		return nil
	}
	t := &turn{key: key}
	if k.replaces(c) {
		t.value, t.held = value, uint32(buffer.Allocated(int(k.params.Size())))
		if c.heldParams() == 0 { // the parameters are a part of c
			t.held += uint32(c.becomes.bytes())
		}
		c.freeParams()
	}
	c.extra().turn = t
	return nil
}

// replaces reports whether the value that was decoded for the key is kept for the handler of c, so
// that it need not be decoded again: if it is of the same type, and holds no more than the
// parameters that it replaces, which nobody else needs.
func (k *keys) replaces(c *incoming) bool {
	return k.params != nil && k.params == c.handler.params && c.s.lender == nil && (c.rare == nil || c.rare.key == nil) &&
		(len(c.params) <= k.free || c.becomes.bytes() <= max(c.heldParams(), len(unaryCall{}.small)))
}

// takeDecoded fills in v what was decoded for the key of c, or reports that nothing was.
func takeDecoded[P any](c *incoming, v *P) bool {
	t := c.turn()
	if t == nil {
		return false
	}
	p, ok := t.value.(*P)
	if ok {
		*v, t.value = *p, nil
	}
	return ok
}

// weigh returns what the parameters of c become for their key. As what the handler takes they have
// been weighed.
func (k *keys) weigh(c *incoming) (n int, err error) {
	switch {
	case k.params == nil || len(c.params) <= k.free:
		return 0, nil
	case k.params == c.handler.params:
		return c.becomes.bytes(), nil
	}
	if n, err = c.s.weigh(c.params, k.params); err != nil {
		err = codecError(codec.BadParams, c.function, c.handler.name, "parameters", err)
	}
	return n, err
}

// enter reports whether it is the turn of c. Otherwise c waits for it: leave will return it. If c
// is made within another call, holder is the one whose turn it is, for whose end that other call
// waits now.
func (k *keys) enter(c *incoming) (turn bool, holder *incoming) {
	t := c.turn()
	if t == nil {
		return true, nil // the call of this key that runs waits for c
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.over {
		return false, nil
	}
	t.in, t.before = true, k.last[t.key]
	k.last[t.key] = c
	if c.nested() {
		k.nested++
	}
	if t.before == nil {
		return true, nil
	}
	t.before.turn().next = c
	if c.nested() {
		for holder = t.before; holder.turn().before != nil; holder = holder.turn().before {
		}
	}
	return false, holder
}

// leave takes c out of the line of its key. If it was its turn, it returns the one whose turn it is
// now, or nil, and whether a call within another one waits behind that.
func (k *keys) leave(c *incoming) (next *incoming, behind bool) {
	t := c.turn()
	if t == nil {
		return nil, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t.over = true
	if !t.in {
		return nil, false // and now it never will be
	}
	t.in = false
	if c.nested() {
		k.nested--
	}
	switch {
	case t.next != nil:
		t.next.turn().before = t.before
	case t.before != nil:
		k.last[t.key] = t.before
	default:
		delete(k.last, t.key)
	}
	if t.before != nil {
		t.before.turn().next = t.next
		return nil, false
	}
	for o := t.next; k.nested > 0 && o != nil && !behind; o = o.turn().next {
		behind = o != t.next && o.nested()
	}
	return t.next, behind
}
