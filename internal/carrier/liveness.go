package carrier

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// liveness tells whether the peer lives, and is what a Carrier remembers of that between two looks.
type liveness struct {
	// after how long without sending a Ping is sent; 0: never, and the peer is not given up for its
	// silence
	interval time.Duration
	timeout  time.Duration // after how long without hearing the peer is given up
	index    int           // among the Carriers that are looked at together; belongs to the Lookout

	frames  atomic.Uint64 // that have arrived; counted if the Wire does not count bytes
	batches atomic.Uint64 // that have been written
	busy    atomic.Int32  // see held and inside
	writing atomic.Bool   // a write has begun that may have to wait
	another atomic.Bool   // there is another Wire since the last look

	// The rest belongs to look.
	received, sent uint64        // as of the last look
	heard, said    time.Duration // when they last changed, by the node's clock
	taken          uint64        // by the application, as of the last look
	// what is arriving, and leaving; nil until that takes longer than a look
	crossings *crossings
	// what a message holds that is arriving, for the owner of the session
	part limits.Part

	ping   atomic.Uint64 // number of the latest Ping
	pinged atomic.Int64  // when it was sent, by the node's clock; 0 once it was answered
	trip   atomic.Int64  // the latest round trip, in nanoseconds
}

// The reader is busy while it does not wait for the peer: a limit holds it up, or it runs code of
// the application.
const (
	heldUp     = 1
	insideCode = 1 << 8 // for each piece of code: others than the reader may run some in its place
)

// held reports whether the reader does not wait for the peer.
func (l *liveness) held() bool { return l.busy.Load() != 0 }

// EnterCode says that the reader is about to run code of the application, LeaveCode that it has.
// Meanwhile the peer is not given up for what is not read, and [Carrier.Wait] does not wait.
func (c *Carrier) EnterCode() { c.live.busy.Add(insideCode) }

// LeaveCode ends what EnterCode has begun.
func (c *Carrier) LeaveCode() { c.live.busy.Add(-insideCode) }

// insideCode reports whether the reader runs code of the application.
func (c *Carrier) insideCode() bool { return c.live.busy.Load() >= insideCode }

// DefaultTimeout is after how long without hearing the peer is given up, if nothing else was set.
const DefaultTimeout = 45 * time.Second

// These bound what a peer may ask for. One that wants to hear sooner sends Pings itself, and is
// answered. One that gives up sooner cannot count on this side's Pings.
const (
	leastInterval = time.Second
	leastTimeout  = 3 * time.Second
)

// agree takes what the peer said of itself: the shorter interval is kept by both, and with three
// Pings in the shorter timeout one of them may be late. A peer that sends no Pings is sent them all
// the same.
func (l *liveness) agree(cfg *Config) {
	if cfg.PingInterval == 0 {
		return
	}
	l.interval, l.timeout = cfg.PingInterval, cfg.PingTimeout
	if cfg.PeerInterval > 0 {
		l.interval = min(l.interval, max(cfg.PeerInterval, leastInterval))
	}
	if cfg.PeerTimeout > 0 {
		l.interval = min(l.interval, max(cfg.PeerTimeout, leastTimeout)/3)
	}
	if !cfg.Dialled {
		// so that on an idle session only one side begins, and the other answers
		l.interval += l.interval / 4
	}
}

// grace returns how long a message that has begun to arrive may take, besides what its size allows.
func (s *Settings) grace() time.Duration {
	if s.PingInterval == 0 {
		return DefaultTimeout
	}
	return s.PingTimeout
}

// look is called from time to time, with the time by the node's clock.
func (c *Carrier) look(now time.Duration) {
	l := &c.live
	if l.another.Swap(false) {
		l.heard, l.said, l.crossings = 0, 0, nil
	}
	w, _ := c.way.present()
	received, sent, metered := l.progress(w)
	if received != l.received || l.held() || l.heard == 0 {
		l.received, l.heard = received, now
	}
	if sent != l.sent || l.said == 0 {
		l.sent, l.said = sent, now
	}
	arriving := receiving(w)
	l.part.Tell(arriving)
	writing, silence := l.writing.Load(), c.silence()
	var slow *codec.Abort
	if metered {
		slow = l.tooSlow(c.Settings, arriving > 0, received, sent, now)
	}
	switch {
	case slow != nil:
		c.Lose(slow)
	case l.interval > 0 && now-l.heard >= l.timeout:
		c.Lose(codec.ErrUnavailable.Withf("the peer is lost: nothing was heard of it for %v", l.timeout))
	case writing && now-l.said >= c.WriteTimeout:
		c.Lose(codec.ErrUnavailable.Withf("the peer is lost: it has taken nothing for %v", c.WriteTimeout))
	case l.interval > 0 && !writing && now-l.said >= silence:
		l.said = now
		l.pinged.Store(int64(now))
		c.Control(message.Ping{N: l.ping.Add(1)}, Now)
	}
}

// Lose ends the Wire because the peer does not answer. A session that cannot go on over another one
// ends with it.
func (c *Carrier) Lose(a *codec.Abort) {
	if c.acks == nil {
		c.End(a)
	}
	c.closeWire()
}

// silence returns after how long without sending a Ping is sent. While the session stands at its
// inbound soft limit, and the application takes nothing, that is soon: what does not read learns
// only from a write that the peer has closed the Wire. As long as the application goes on, it comes
// to the end of what the peer has left by itself.
func (c *Carrier) silence() time.Duration {
	l := &c.live
	before := l.taken
	l.taken = c.inbound.Relieved()
	if l.taken == before && l.held() && c.pause.gate.Load() == nil && c.inbound.State() >= limits.Soft {
		return min(l.interval, leastInterval)
	}
	return l.interval
}

// progress returns two numbers that change when something is received and sent over w. They are
// bytes if that is metered.
func (l *liveness) progress(w wire.Wire) (received, sent uint64, metered bool) {
	if m, ok := w.(wire.Meter); ok {
		received, sent = m.Progress()
		return received, sent, true
	}
	return l.frames.Load(), l.batches.Load(), false
}

// Pong takes the answer to a Ping.
func (c *Carrier) Pong(n uint64) {
	l := &c.live
	if n != l.ping.Load() {
		return
	}
	if sent := l.pinged.Swap(0); sent > 0 {
		l.trip.Store(int64(c.Now()) - sent)
	}
}

// restart begins anew over another Wire.
func (l *liveness) restart() {
	l.another.Store(true)
	l.pinged.Store(0)
}
