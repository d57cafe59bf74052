package carrier

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/limits"
)

// stall ends a session from which the application takes nothing at all while it stands at its
// inbound soft limit.
type stall struct {
	*base // these are fixed
	live  *liveness

	present atomic.Pointer[standstill] // nil unless the session stands there
}

// standstill is a session that stands at its inbound soft limit. It belongs to its timer.
type standstill struct {
	timer *time.Timer
	taken uint64        // as of the last look
	idle  time.Duration // for how long nothing had been taken then, while this process ran
	since time.Duration // when that look was, by the node's clock
}

// probing is how often a session that sends no Pings in silence sends one while it stands at its
// soft limit: what does not read learns only from a write that the peer has closed the Wire.
const probing = 5 * time.Second

// changed is called with each new state of the inbound counter.
func (w *stall) changed(state limits.State) {
	if state == limits.Soft {
		w.begin()
	} else {
		w.end()
	}
}

func (w *stall) begin() {
	s := &standstill{taken: w.inbound.Relieved(), since: w.Now()}
	s.timer = time.AfterFunc(time.Hour, func() { w.check(s) }) // it runs when others can stop it
	w.swap(s)
	s.timer.Reset(w.period())
}

// swap lets s be looked at, and what was before no longer.
func (w *stall) swap(s *standstill) {
	if old := w.present.Swap(s); old != nil {
		old.timer.Stop()
	}
}

// period returns how often it is looked whether the application has taken something.
func (w *stall) period() time.Duration { return min(w.Stall/looks, probing) }

func (w *stall) end() { w.swap(nil) }

func (w *stall) check(s *standstill) {
	if w.present.Load() != s || w.ctx.Err() != nil {
		return
	}
	taken, now := w.inbound.Relieved(), w.Now()
	late := wait.Late(now-s.since, w.period())
	s.idle, s.since = s.idle+min(now-s.since, w.period()), now
	switch {
	case s.taken != taken || w.live.hold.paused():
		s.taken, s.idle = taken, 0
	case s.idle >= w.Stall && !late:
		w.host.End(codec.ErrStalled.Withf("%v wait, and the application has taken none for %v", w.inbound.Held(), w.Stall))
		return
	case w.live.interval == 0:
		w.host.Control(message.Ping{}, Now)
	}
	s.timer.Reset(w.period())
}
