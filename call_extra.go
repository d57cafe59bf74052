package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
)

// extra is what few calls of the peer have.
type extra struct {
	turn  *turn  // nil if its function has no keys
	trace []byte // the peer's trace context
	key   []byte // of a durable call
	// of a durable call that is the first of its key, from the moment it is let in
	memory *memory
	// of a repetition that waits for the answer; guarded by the lock of once
	awaits   *unanswered
	params   *buffer.Buffer // what the parameters are in, if the handler only borrows them
	kept     int            // bytes that params held
	arrived  time.Duration  // when, by the node's clock; 0 if this call is not timed
	strings  int            // bytes of the strings of its meta, which its Open has cost
	returned uint32         // bytes of the parameters that its Open costs no more
	shares   bool           // its answer is one that is remembered, and need not be copied
	counted  bool           // its Open is counted: it has a key, and may be a repetition
}

// extra returns the extra of c, of which it makes one if there is none.
func (c *incoming) extra() *extra {
	if c.rare == nil {
		c.rare = new(extra)
	}
	return c.rare
}

// nested reports whether c is made within a call of this side.
func (c *incoming) nested() bool { return c.within != nil }

// counted reports whether the Open of c was counted before it is known where c belongs.
func (c *incoming) counted() bool { return c.rare != nil && c.rare.counted }

// urgent reports whether a call within another one waits for c, or c is one itself: it waits for no
// worker. The caller holds the lock of the dispatcher.
func (c *incoming) urgent() bool { return c.within != nil || c.urged }

// gate returns what bounds how many calls like c run at once, or nil: the gate of its function, or
// else that of its owner, if it is durable. One within another call waits for neither owner nor
// worker.
func (c *incoming) gate() *gate {
	if g := c.handler.gate; g != nil || c.nested() || c.memory() == nil {
		return g
	}
	return c.rare.memory.owner.durable.gate
}

// shares reports whether the result of c is in memory that does not change.
func (c *incoming) shares() bool { return c.rare != nil && c.rare.shares }

func (c *incoming) turn() *turn {
	if c.rare == nil {
		return nil
	}
	return c.rare.turn
}

// withinSame reports whether c is made within another call of the same function; if key is not nil,
// of the same function and key.
func (c *incoming) withinSame(key *uint64) bool {
	var by *incoming
	for o := c.within; o != nil && o.by != nil; o = by.within {
		by = o.by.(*incoming)
		if by.handler != c.handler {
			continue
		}
		if t := by.turn(); key == nil || t != nil && t.key == *key {
			return true
		}
	}
	return false
}
