package asterisque

import "slices"

// A repetition of a durable call that has no answer yet waits for it: without its parameters, and
// no longer than its caller does.

// mostRepetitions is how many may wait for one call.
const mostRepetitions = 8

// await lets c, a repetition, wait for the answer to m. It reports false if that is there.
func (o *once) await(m *memory, c *served) bool {
	if !c.work.nested {
		c.s.calls.giveBack(uint64(c.work.size), false) // nobody needs its parameters
		c.work.size = 0
	}
	c.freeParams()
	c.s.arrived(c.held()) // before others may answer it
	o.mu.Lock()
	r := m.open
	if r == nil {
		o.mu.Unlock()
		c.countOut()
		return false
	}
	c.rare.awaits = r
	r.waiting = append(r.waiting, c)
	var displaced *served
	if len(r.waiting) > mostRepetitions {
		displaced = r.waiting[0]
		r.leaveLocked(displaced)
	}
	o.mu.Unlock()
	if displaced != nil {
		displaced.handler.meter.ended(errDisplaced)
		displaced.awaited(nil, errDisplaced)
	}
	if c.s.ctx.Err() != nil { // whoever ended the session may have looked before
		o.leave(c)
	}
	return true
}

// leaveLocked takes a repetition out that waits.
func (r *unanswered) leaveLocked(c *served) {
	c.rare.awaits = nil
	r.waiting = slices.DeleteFunc(r.waiting, func(o *served) bool { return o == c })
}

// leave is called when the caller of c, which has a key, gives up, or its session ends.
func (o *once) leave(c *served) {
	o.mu.Lock()
	r := c.rare.awaits
	if r != nil {
		r.leaveLocked(c)
	}
	o.mu.Unlock()
	if r != nil {
		c.endWait()
	}
}

// endWait gives back what a repetition has held while it waited.
func (c *served) endWait() {
	c.countOut()
	c.s.calls.giveBack(c.cost(), c.work.nested)
}

// awaited answers a repetition that has waited.
func (c *served) awaited(result []byte, a *Abort) {
	c.endWait()
	c.reply(result, a)
}
