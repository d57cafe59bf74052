package flowmodel

// direction is one direction of a stream: what its two ends know of it.
type direction struct {
	c    *call
	from int
	isUp bool // from the caller to the handler

	sending
	receiving
}

func (d *direction) to() int { return 1 - d.from }

// feeds makes one goroutine of the taking here and the sending there: take one, send one.
func (d *direction) feeds(sink *direction) {
	d.sink, sink.source = sink, d
	sink.passed = d.takes
}

// sinkBusy says whether what was taken last has not been passed on yet.
func (d *direction) sinkBusy() bool {
	to := d.sink
	return to != nil && !to.sendOver() && (to.passed < d.takes || to.cost != 0)
}

// handlerReady says whether the handler has come to its stream.
func (c *call) handlerReady() bool {
	return c.callee == calleeRuns && !(c.first && c.toNest+c.kids > 0)
}
