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
	timer atomic.Pointer[time.Timer] // runs while the session stands there
	taken atomic.Uint64              // as of the last time that it ran out
	idle  atomic.Int64               // for how long nothing had been taken then, in nanoseconds
}

// probing is how often a session that sends no Pings in silence sends one while it stands at its
// soft limit: what does not read learns only from a write that the peer has closed the Wire.
const probing = 5 * time.Second

// InboundChanged is called with each new state of the inbound counter.
func (c *Carrier) InboundChanged(state limits.State) {
	if state == limits.Soft {
		c.beginStall()
	} else {
		c.stall.end()
	}
}

func (c *Carrier) beginStall() {
	w := &c.stall
	w.taken.Store(c.inbound.Relieved())
	w.idle.Store(0)
	t := time.AfterFunc(c.stallPeriod(), c.checkStall)
	if old := w.timer.Swap(t); old != nil {
		old.Stop()
	}
}

// stallPeriod returns how often it is looked whether the application has taken something.
func (c *Carrier) stallPeriod() time.Duration {
	if c.live.interval > 0 {
		return c.Stall
	}
	return min(c.Stall, probing)
}

func (w *stall) end() {
	if t := w.timer.Swap(nil); t != nil {
		t.Stop()
	}
}

func (c *Carrier) checkStall() {
	w, period := &c.stall, c.stallPeriod()
	t := w.timer.Load()
	taken := c.inbound.Relieved()
	switch {
	case t == nil || c.ctx.Err() != nil:
		return
	case w.taken.Swap(taken) != taken || c.pause.gate.Load() != nil:
		w.idle.Store(0)
	case time.Duration(w.idle.Add(int64(period))) >= c.Stall:
		c.End(codec.ErrStalled.Withf("%v wait, and the application has taken none for %v", c.inbound.Held(), c.Stall))
		return
	case c.live.interval == 0:
		c.Control(message.Ping{N: c.live.ping.Add(1)}, Now)
	}
	t.Reset(period)
}
