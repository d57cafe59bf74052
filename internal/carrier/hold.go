package carrier

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/limits"
)

// What holds the reader up: the application, which pauses it, and the inbound soft limit.

// Pause stops reading, after the frame that is being dealt with, until Unpause.
func (c *Carrier) Pause() { c.pause.begin() }

// Unpause goes on with reading.
func (c *Carrier) Unpause() { c.pause.end() }

// pause is a gate that the application closes and opens. Looking at it costs one atomic read.
type pause struct {
	gate atomic.Pointer[chan struct{}] // nil while it is open; the channel is closed when it opens
}

func (p *pause) begin() {
	c := make(chan struct{})
	p.gate.CompareAndSwap(nil, &c)
}

func (p *pause) end() {
	if c := p.gate.Swap(nil); c != nil {
		close(*c)
	}
}

// stops count how often the reader had to stop at the inbound soft limit.
type stops struct {
	times   atomic.Uint64
	elapsed atomic.Int64 // in nanoseconds
}

// waitInbound waits while the Carrier is paused or the session at its inbound soft limit. It
// reports false if the Wire is lost or the session ends meanwhile. From time to time it reports
// true all the same: then one frame may pass, as long as the hard limit is far, so that a dead peer
// is noticed although frames of it are left.
func (c *Carrier) waitInbound() bool {
	if c.pause.gate.Load() == nil && c.inbound.Room() == nil {
		return true
	}
	c.writeAnswers()
	c.live.busy.Add(heldUp)
	defer c.live.busy.Add(-heldUp)
	var probe <-chan time.Time
	if c.live.interval > 0 {
		t := time.NewTicker(c.live.interval)
		defer t.Stop()
		probe = t.C
	}
	for {
		if gate := c.pause.gate.Load(); gate != nil {
			if over, ok := c.waitForSign(*gate, probe); over {
				return ok
			}
		} else if room := c.inbound.Room(); room != nil {
			c.stops.times.Add(1)
			begin := c.Now()
			over, ok := c.waitForSign(room, probe)
			c.stops.elapsed.Add(int64(c.Now() - begin))
			if over {
				return ok
			}
		} else {
			return true
		}
	}
}

// waitForSign waits for a gate or for room, and then over is false. Otherwise ok is as for
// waitInbound.
func (c *Carrier) waitForSign(sign <-chan struct{}, probe <-chan time.Time) (over, ok bool) {
	select {
	case <-sign:
		return false, false
	case <-probe:
		far := farFromHard(c.inbound)
		return far, far
	case <-c.way.isShut():
	case <-c.ctx.Done():
	}
	return true, false
}

// farFromHard reports whether what is held is not halfway from the soft limit to the hard one.
func farFromHard(c *limits.Counter) bool {
	l, held := c.Limits(), c.Held()
	return (l.Hard.Messages == 0 || held.Messages < (l.Soft.Messages+l.Hard.Messages)/2) &&
		(l.Hard.Bytes == 0 || held.Bytes < (l.Soft.Bytes+l.Hard.Bytes)/2)
}
