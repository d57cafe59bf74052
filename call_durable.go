package asterisque

import "github.com/asterisque-go/asterisque/codec"

// beginDurable reports whether c, which has an idempotency key, is to run. Otherwise it is answered
// with what became of the first one, at once or later.
func (c *served) beginDurable() (run bool) {
	m, refused := c.x.serving.calls.staff.durable.enter(durableOpen{
		owner: c.x.serving.calls.ownedBy(), function: c.handler.number, stream: c.work.windowed, key: c.rare.key, params: c.params,
	}, c)
	switch {
	case refused != nil:
		c.x.serving.calls.giveBack(c.cost(), c.work.nested)
		c.refuse(refused)
	case m == nil:
		return true
	case !c.awaitAnswer(m):
		c.work.byReader = true // it is the reader's goroutine
		c.rare.durable.shared = true
		c.reply(m.result, m.abort)
	}
	return false
}

// awaitAnswer lets c, a repetition, wait for the answer to m: without its parameters, and no longer
// than its caller does. It reports false if the answer is there.
func (c *served) awaitAnswer(m *durableAnswer) bool {
	if !c.work.nested {
		c.x.serving.calls.giveBack(uint64(c.work.size), false) // nobody needs its parameters
		c.work.size = 0
	}
	c.freeParams()
	c.x.arrived(c.held()) // before others may answer it
	waits, displaced := c.x.serving.calls.staff.durable.await(m, c)
	if !waits {
		c.countOut()
		return false
	}
	if displaced != nil {
		displaced.awaited(nil, errDisplaced)
	}
	if c.x.ctx.Err() != nil { // whoever ended the session may have looked before
		c.endAwaiting()
	}
	return true
}

// endAwaiting is called when the caller of c, which has a key, gives up, or its session ends.
func (c *served) endAwaiting() {
	if c.x.serving.calls.staff.durable.withdraw(c) {
		c.noLongerAwaits()
	}
}

// noLongerAwaits gives back what a repetition has held while it waited.
func (c *served) noLongerAwaits() {
	c.countOut()
	c.x.serving.calls.giveBack(c.cost(), c.work.nested)
}

// role implements durableJob.
func (c *served) role() *durableRole { return &c.rare.durable }

// cancel implements durableJob.
func (c *served) cancel() { c.end(canceled) }

// awaited implements durableJob.
func (c *served) awaited(result []byte, a *Abort) {
	if a == errDisplaced {
		c.handler.meter.ended(a)
	}
	c.noLongerAwaits()
	c.reply(result, a)
}

// takeOver implements durableJob.
func (c *served) takeOver(params []byte) {
	c.countOut()
	c.params = params
	if !c.work.nested {
		c.work.size, c.rare.returned = uint32(len(params)), uint32(len(params))
	}
	if c.handler.key != nil {
		// as its key may block, or end the goroutine, which is that of somebody else; it ends by
		// itself
		go c.runInPlace()
		return
	}
	c.runInPlace()
}

// runInPlace lets c run in the place of another one, which did not.
func (c *served) runInPlace() {
	if err := c.enqueue((*served).turnBackNext); err != nil {
		c.turnBackNext(codec.AbortOf(err))
	}
}

// turnBackNext refuses c, which was about to run in the place of another one.
func (c *served) turnBackNext(a *Abort) {
	c.x.serving.calls.giveBack(c.cost(), c.work.nested)
	c.refuse(a)
}

// firstOf returns the answer that c is the first call of, or nil.
func (c *served) firstOf() *durableAnswer {
	if c.rare == nil {
		return nil
	}
	return c.rare.durable.first
}
