package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// credit is the credit at the peer, for which Opens wait.
type credit struct {
	limit, used int         // totals of cost
	spare       int         // reserved for urgent calls
	line        messageLine // waiting calls
}

func (k *credit) init(peer *flow.Plan) {
	k.limit = peer.Opens
	largest := peer.Largest + 80 + peer.Overhead + peer.Window
	k.spare = max(0, min(k.limit/8, k.limit-largest))
}

// take uses cost if there is enough credit for a call of this priority.
func (k *credit) take(p priority.Priority, cost int) bool {
	least := k.spare
	if p > priority.Normal {
		least = 0
	}
	if k.limit-k.used-cost < least {
		return false
	}
	k.used += cost
	return true
}

// extraCredit is what Opens may take for the first Blocks of their streams. No Open waits for it.
type extraCredit struct{ limit, taken int } // totals of cost

// take returns the credit of an Open with a window of the given size.
func (k *extraCredit) take(window int) int {
	n := max(0, min(64<<10-window, (k.limit-k.taken)/8))
	k.taken += n
	return n
}

// nesting counts the unanswered calls of one end that are made within calls of its peer.
type nesting struct {
	calls int
	cost  int // to the peer
	sizes int // of the windows of their streams
}

// enter reports whether there is room for one more call, at the peer and here, and counts the call
// if so.
func (n *nesting) enter(c *call, peer, own *flow.Plan) bool {
	size := 0
	if c.stream {
		size = own.Window
	}
	if c.depth > 64 || n.calls >= peer.NestedCalls || n.cost+c.cost > peer.Nested ||
		n.sizes+size > own.NestedOwn {
		return false
	}
	c.entered, c.within = true, size
	n.calls++
	n.cost += c.cost
	n.sizes += c.within
	return true
}

// leave releases the place of an answered call, if it has one.
func (n *nesting) leave(c *call) {
	if !c.entered {
		return
	}
	c.entered = false
	n.calls--
	n.cost -= c.cost
}

// drop releases the window of a stream of which no Block is left.
func (n *nesting) drop(c *call) {
	n.sizes -= c.within
	c.within = 0
}
