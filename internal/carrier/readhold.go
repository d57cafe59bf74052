package carrier

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/internal/flow"
)

// readHold contains the two reasons for which the reader stops: a pause by the application, and the
// inbound soft limit.
type readHold struct {
	*carrierBase // fixed, as is writer
	writer       *writer
	// idle time on the sending side after which a Ping is sent, and the time after which a stopped
	// reader accepts one frame; 0: never, and a silent peer is not considered lost
	interval time.Duration

	pause pauseGate
	stops atomic.Pointer[softLimitStops] // nil before the first stop; created by the reader
}

// paused reports whether the application has paused the reader.
func (h *readHold) paused() bool { return h.pause.gate.Load() != nil }

// pauseGate is a gate that the application closes and opens. A check of the gate costs one atomic
// read.
type pauseGate struct {
	gate atomic.Pointer[chan struct{}] // nil while open; the channel is closed when the gate opens
}

func (p *pauseGate) begin() {
	c := make(chan struct{})
	p.gate.CompareAndSwap(nil, &c)
}

func (p *pauseGate) end() {
	if c := p.gate.Swap(nil); c != nil {
		close(*c)
	}
}

// softLimitStops counts how often the reader has stopped at the inbound soft limit, and for how
// long.
type softLimitStops struct {
	times   atomic.Uint64
	elapsed atomic.Int64 // in nanoseconds
}

// stopped adds to the number and the duration of stops. It is for the reader.
func (h *readHold) stopped(times uint64, elapsed time.Duration) {
	s := h.stops.Load()
	if s == nil {
		s = new(softLimitStops)
		h.stops.Store(s)
	}
	s.times.Add(times)
	s.elapsed.Add(int64(elapsed))
}

// waitInbound blocks while the Carrier is paused or the session is at its inbound soft limit. It
// returns false if the Wire is lost or the session ends meanwhile. While the hard limit is far, it
// also returns true from time to time, so that one frame passes. So this side detects a dead peer
// although unread frames are left.
func (h *readHold) waitInbound() bool {
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

// waitForSign waits for sign, and then over is false. If over is true, ok is the result of
// waitInbound.
func (h *readHold) waitForSign(sign <-chan struct{}, probe <-chan time.Time) (over, ok bool) {
	select {
	case <-sign:
		return false, false
	case <-probe:
		far := farFromHard(h.inbound)
		return far, far
	case <-h.transport.isShut():
	case <-h.ctx.Done():
	}
	return true, false
}

// farFromHard reports whether the count is below the middle between the soft and the hard limit.
func farFromHard(c *flow.Counter) bool {
	l, held := c.Limits(), c.Held()
	return (l.Hard.Messages == 0 || held.Messages < (l.Soft.Messages+l.Hard.Messages)/2) &&
		(l.Hard.Bytes == 0 || held.Bytes < (l.Soft.Bytes+l.Hard.Bytes)/2)
}
