package flowmodel

// direction is one direction of a stream, with the state of both of its ends.
type direction struct {
	c    *call
	from int
	isUp bool // from the caller to the handler

	sending
	receiving
}

func (d *direction) to() int { return 1 - d.from }

// feeds runs the receiver of d and the sender of sink on one goroutine: receive one, send one.
func (d *direction) feeds(sink *direction) {
	d.sink, sink.source = sink, d
	sink.passed = d.takes
}

// sinkBusy reports whether the last received Block has not been passed on yet.
func (d *direction) sinkBusy() bool {
	to := d.sink
	return to != nil && !to.sendOver() && (to.passed < d.takes || to.cost != 0)
}

// handlerReady reports whether the handler has reached its stream.
func (c *call) handlerReady() bool {
	return c.callee == calleeRuns && !(c.first && c.toNest+c.kids > 0)
}
