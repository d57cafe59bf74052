package carrier

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/limits"
)

// stallDetector ends a session at its inbound soft limit when the application takes no message for
// too long.
type stallDetector struct {
	*carrierBase // fixed, as is live
	live         *liveness

	present atomic.Pointer[stallTimer] // nil unless the session is at its soft limit
}

// stallTimer is the time of a session at its inbound soft limit. It belongs to its timer.
type stallTimer struct {
	timer *time.Timer
	taken uint64        // Relieved of the counter as of the last look
	idle  time.Duration // time without a message taken, while this process ran
	since time.Duration // time of the last look, by the node's clock
	looks wait.Looks
}

// probing is the interval of Pings at the soft limit, for a session that sends no Pings in silence.
// A side that does not read can learn only from a write that the peer has closed the Wire.
const probing = 5 * time.Second

// changed is called with each new state of the inbound counter.
func (w *stallDetector) changed(state limits.State) {
	if state == limits.Soft {
		w.begin()
	} else {
		w.end()
	}
}

func (w *stallDetector) begin() {
	s := &stallTimer{taken: w.inbound.Relieved(), since: w.Now()}
	s.timer = time.AfterFunc(time.Hour, func() { w.check(s) }) // Reset below starts it
	w.swap(s)
	s.timer.Reset(w.period())
}

// swap makes s the standstill to check, and stops the timer of the former one.
func (w *stallDetector) swap(s *stallTimer) {
	if old := w.present.Swap(s); old != nil {
		old.timer.Stop()
	}
}

// period returns the interval of checks.
func (w *stallDetector) period() time.Duration { return min(w.Stall/looks, probing) }

func (w *stallDetector) end() { w.swap(nil) }

func (w *stallDetector) check(s *stallTimer) {
	if w.present.Load() != s || w.ctx.Err() != nil {
		return
	}
	taken, now := w.inbound.Relieved(), w.Now()
	late := s.looks.Late(now-s.since, w.period())
	s.idle, s.since = s.idle+min(now-s.since, w.period()), now
	switch {
	case s.taken != taken || w.live.readHold.paused():
		s.taken, s.idle = taken, 0
	case s.idle >= w.Stall && !late && w.host.relieve():
		s.idle = 0
	case s.idle >= w.Stall && !late:
		w.host.End(codec.ErrStalled.Withf("%v wait, and the application has taken none for %v", w.inbound.Held(), w.Stall))
		return
	case w.live.interval == 0:
		w.host.Control(message.Ping{}, Now)
	}
	s.timer.Reset(w.period())
}
