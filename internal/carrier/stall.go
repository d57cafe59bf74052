package carrier

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/limits"
)

// stall ends a session from which the application takes nothing at all while it stands at its
// inbound soft limit.
type stall struct {
	*base // these are fixed
	live  *liveness

	timer atomic.Pointer[time.Timer] // runs while the session stands there
	taken atomic.Uint64              // as of the last time that it ran out
	idle  atomic.Int64               // for how long nothing had been taken then, in nanoseconds
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
	w.taken.Store(w.inbound.Relieved())
	w.idle.Store(0)
	t := time.AfterFunc(w.period(), w.check)
	if old := w.timer.Swap(t); old != nil {
		old.Stop()
	}
}

// period returns how often it is looked whether the application has taken something.
func (w *stall) period() time.Duration {
	if w.live.interval > 0 {
		return w.Stall
	}
	return min(w.Stall, probing)
}

func (w *stall) end() {
	if t := w.timer.Swap(nil); t != nil {
		t.Stop()
	}
}

func (w *stall) check() {
	period := w.period()
	t := w.timer.Load()
	taken := w.inbound.Relieved()
	switch {
	case t == nil || w.ctx.Err() != nil:
		return
	case w.taken.Swap(taken) != taken || w.live.hold.paused():
		w.idle.Store(0)
	case time.Duration(w.idle.Add(int64(period))) >= w.Stall:
		w.host.End(codec.ErrStalled.Withf("%v wait, and the application has taken none for %v", w.inbound.Held(), w.Stall))
		return
	case w.live.interval == 0:
		w.host.Control(message.Ping{}, Now)
	}
	t.Reset(period)
}
