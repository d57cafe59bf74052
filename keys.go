package asterisque

import (
	"runtime/debug"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
)

// keys is the order per key of one function, over all sessions: of the calls with the same key, one at a time runs or waits for a worker, and the others wait here in the
// order of their arrival. A key costs memory only while calls have it, and no goroutine.
type keys struct {
	of func(values codec.Values, params []byte) (key uint64, err error) // fixed

	mu   sync.Mutex
	last map[uint64]*incoming // guarded by mu, like the turns of its calls: who came last, by key
}

// turn is the place of a call in the line of its key.
type turn struct {
	key          uint64
	before, next *incoming // before is nil for the one whose turn it is
	in           bool      // it is in the line
	over         bool      // it has left
}

// name finds out the key of c. An error, or a panic of the application's function, refuses the call.
func (k *keys) name(c *incoming) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.s.cfg.log.Error("key panicked", "function", c.function, "name", c.handler.name, "panic", v, "stack", string(debug.Stack()))
			err = codec.ErrPanicked.Withf("the key of function %d %q panicked", c.function, c.handler.name)
		}
	}()
	key, err := k.of(c.s.values, c.params)
	if err != nil {
		return codecError(codec.BadParams, c.function, c.handler.name, "parameters", err)
	}
	if !c.encloses(&key) {
		c.extra().turn = &turn{key: key}
	}
	return nil
}

// enter reports whether it is the turn of c. Otherwise c waits for it: leave will return it.
func (k *keys) enter(c *incoming) bool {
	t := c.turn()
	if t == nil {
		return true // the call of this key that runs waits for c
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.over {
		return false
	}
	t.in, t.before = true, k.last[t.key]
	k.last[t.key] = c
	if t.before == nil {
		return true
	}
	t.before.turn().next = c
	return false
}

// leave takes c out of the line of its key. If it was its turn, it returns the one whose turn it is now, or nil.
func (k *keys) leave(c *incoming) (next *incoming) {
	t := c.turn()
	if t == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t.over = true
	if !t.in {
		return nil // and now it never will be
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
		return nil
	}
	return t.next
}
