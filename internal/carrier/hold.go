package carrier

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/limits"
)

// hold is what holds the reader up: the application, which pauses it, and the inbound soft limit.
type hold struct {
	*base  // these are fixed
	writer *writer
	// after how long without sending a Ping is sent, and once in which a reader that is held up
	// lets a frame pass; 0: never, and the peer is not given up for its silence
	interval time.Duration

	pause pause
	stops atomic.Pointer[stops] // nil until the reader has to stop; made by that
}

// paused reports whether the application has paused the reader.
func (h *hold) paused() bool { return h.pause.gate.Load() != nil }

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

// stopped counts so many stops, and for how long they have lasted. It is for the reader.
func (h *hold) stopped(times uint64, elapsed time.Duration) {
	s := h.stops.Load()
	if s == nil {
		s = new(stops)
		h.stops.Store(s)
	}
	s.times.Add(times)
	s.elapsed.Add(int64(elapsed))
}

// waitInbound waits while the Carrier is paused or the session at its inbound soft limit. It
// reports false if the Wire is lost or the session ends meanwhile. From time to time it reports
// true all the same, as long as the hard limit is far. Then one frame passes. So this side notices
// a dead peer although frames of it are left.
func (h *hold) waitInbound() bool {
	if h.pause.gate.Load() == nil && h.inbound.Room() == nil {
		return true
	}
	h.writer.writeAnswers()
	h.meter.busy.Add(heldUp)
	defer h.meter.busy.Add(-heldUp)
	var probe <-chan time.Time
	if h.interval > 0 {
		t := time.NewTicker(h.interval)
		defer t.Stop()
		probe = t.C
	}
	for {
		if gate := h.pause.gate.Load(); gate != nil {
			if over, ok := h.waitForSign(*gate, probe); over {
				return ok
			}
		} else if room := h.inbound.Room(); room != nil {
			begin := h.Now()
			h.stopped(1, 0)
			over, ok := h.waitForSign(room, probe)
			h.stopped(0, h.Now()-begin)
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
func (h *hold) waitForSign(sign <-chan struct{}, probe <-chan time.Time) (over, ok bool) {
	select {
	case <-sign:
		return false, false
	case <-probe:
		far := farFromHard(h.inbound)
		return far, far
	case <-h.way.isShut():
	case <-h.ctx.Done():
	}
	return true, false
}

// farFromHard reports whether what is held is not halfway from the soft limit to the hard one.
func farFromHard(c *limits.Counter) bool {
	l, held := c.Limits(), c.Held()
	return (l.Hard.Messages == 0 || held.Messages < (l.Soft.Messages+l.Hard.Messages)/2) &&
		(l.Hard.Bytes == 0 || held.Bytes < (l.Soft.Bytes+l.Hard.Bytes)/2)
}
