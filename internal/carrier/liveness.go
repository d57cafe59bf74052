package carrier

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/limits"
)

// liveness tells whether the peer lives, and is what a Carrier remembers of that between two looks.
type liveness struct {
	*hold // fixed

	// The rest belongs to look.
	received, sent uint64        // as of the last look
	heard, said    time.Duration // when they last changed, by the node's clock while it ran
	taken          uint64        // by the application, as of the last look
	// what is arriving, and leaving; nil until that takes longer than a look
	crossings *crossings
	// what a message holds that is arriving, for the owner of the session
	part limits.Part

	pinged atomic.Int64 // when the latest Ping was sent, by the node's clock; 0 when answered
	trip   atomic.Int64 // the latest round trip, in nanoseconds
}

// Pings are what is known of the peer before the first one.
type Pings struct {
	Dialled bool // this side has connected
	Mute    bool // the peer need not answer Pings
	// what the peer has announced of itself; 0: nothing
	Interval, Timeout time.Duration
}

// These bound what a peer may ask for. One that wants to hear sooner sends Pings itself, and is
// answered. One that gives up sooner cannot count on this side's Pings.
const (
	leastInterval = time.Second
	leastTimeout  = 3 * time.Second
)

// agree takes what the peer said of itself. Both sides keep the shorter interval. Three Pings fit
// into the shorter timeout, so that one of them may be late. A peer that sends no Pings gets them
// all the same.
func (l *liveness) agree(p Pings) {
	if l.PingInterval == 0 || p.Mute {
		return
	}
	l.interval = l.PingInterval
	if p.Interval > 0 {
		l.interval = min(l.interval, max(p.Interval, leastInterval))
	}
	if p.Timeout > 0 {
		l.interval = min(l.interval, max(p.Timeout, leastTimeout)/3)
	}
	if !p.Dialled {
		// so that on an idle session only one side begins, and the other answers
		l.interval += l.interval / 4
	}
}

// every returns how often the Carrier is to be looked at. There are few different values: half of
// what the node itself needs, half of that, and so on, whatever peers ask for.
func (l *liveness) every() time.Duration {
	every := min(l.grace(), l.WriteTimeout)
	if l.interval > 0 {
		every = min(every, l.PingInterval)
	}
	every /= looks
	for l.interval > 0 && every > l.interval/looks {
		every /= 2
	}
	return max(every, 1)
}

// look is called from time to time, with the time by the node's clock, less that in which the
// process did not run. late says that it has not run just now: then the peer is not judged.
func (l *liveness) look(now time.Duration, late bool) {
	if l.way.changed() {
		l.heard, l.said, l.crossings = 0, 0, nil
		l.beginAgain()
	}
	w, _ := l.way.present()
	received, sent, metered := l.meter.progress(w)
	if received != l.received || l.meter.held() || l.heard == 0 {
		l.received, l.heard = received, now
	}
	if sent != l.sent || l.said == 0 {
		l.sent, l.said = sent, now
	}
	arriving := receiving(w)
	l.part.Tell(arriving + l.held())
	writing, silence := l.meter.writing.Load(), l.silence()
	slow := l.stuck(received, metered, now)
	if metered && slow == nil {
		slow = l.tooSlow(arriving > 0, received, sent, now)
	}
	switch {
	case late:
	case slow != nil:
		l.host.Lose(slow)
	case l.interval > 0 && now-l.heard >= l.PingTimeout:
		l.host.Lose(codec.ErrUnavailable.Withf("the peer is lost: nothing was heard of it for %v", l.PingTimeout))
	case writing && now-l.said >= l.WriteTimeout:
		l.host.Lose(codec.ErrUnavailable.Withf("the peer is lost: it has taken nothing for %v", l.WriteTimeout))
	case l.interval > 0 && !writing && now-l.said >= silence:
		l.said = now
		sent := l.Now()
		l.pinged.Store(int64(sent))
		l.host.Control(message.Ping{N: pingNumber(sent)}, Now)
	}
}

// beginAgain forgets what is known of unfinished messages: they go on over another Wire.
func (l *liveness) beginAgain() {
	if p := l.parts.Load(); p != nil {
		p.slow = crossing{}
	}
}

// stuck returns why the peer is lost if it has begun a message in parts and goes on with that, and
// with whatever overtakes it, too slowly. Time in which this side does not read is not the peer's.
// Where bytes are not metered, a frame counts as what is to come in a second.
func (l *liveness) stuck(received uint64, metered bool, now time.Duration) *codec.Abort {
	p := l.parts.Load()
	if p == nil {
		return nil
	}
	oldest := p.oldest()
	if oldest == 0 || l.meter.held() {
		p.slow = crossing{}
		return nil
	}
	if !metered {
		received *= leastRate
	}
	if took, n := p.slow.passed(oldest, received, now); late(took, l.grace(), n) {
		return slowPeer("a message in parts has begun, and %d bytes have come within %v", n, took, l.grace())
	}
	return nil
}

// silence returns after how long without sending this side sends a Ping. That is soon while the
// session stands at its inbound soft limit and the application takes nothing: a side that does not
// read learns only by writing that the peer has closed the Wire. As long as the application takes
// something, the reader comes to the end of the Wire by itself.
func (l *liveness) silence() time.Duration {
	before := l.taken
	l.taken = l.inbound.Relieved()
	if l.taken == before && l.meter.held() && !l.paused() && l.inbound.State() >= limits.Soft {
		return min(l.interval, leastInterval)
	}
	return l.interval
}

// pingNumber returns the number of the Ping that is sent at t.
func pingNumber(t time.Duration) uint64 { return uint64(t / time.Millisecond) }

// pong takes the answer to a Ping, and returns when that was sent. ok is false for the answer to a
// mark.
func (l *liveness) pong(n uint64) (at time.Duration, ok bool) {
	sent := l.pinged.Load()
	if sent == 0 || n != pingNumber(time.Duration(sent)) || !l.pinged.CompareAndSwap(sent, 0) {
		return 0, false
	}
	l.trip.Store(int64(l.Now()) - sent)
	return time.Duration(sent), true
}

// restart begins anew over another Wire.
func (l *liveness) restart() {
	l.pinged.Store(0)
}

// tooSlow returns why the peer is lost if a message that has begun moves too slowly, and nil if
// none does. Time in which this side does not read is not the peer's.
func (l *liveness) tooSlow(receiving bool, received, sent uint64, now time.Duration) *codec.Abort {
	arrives, leaves := receiving && !l.meter.held(), l.meter.writing.Load()
	batch := l.meter.batches.Load()
	if number := l.out.Underway(); number > 0 {
		leaves, batch = true, math.MaxUint64-number // with whatever overtakes it
	}
	if !arrives && !leaves {
		l.crossings = nil
		return nil
	}
	if l.crossings == nil {
		l.crossings = new(crossings)
	}
	c := l.crossings
	if grace := l.grace(); !arrives {
		c.in = crossing{}
	} else if took, n := c.in.passed(l.meter.frames.Load(), received, now); late(took, grace, n) {
		return slowPeer("%d bytes of a message have come within %v", n, took, grace)
	}
	if grace := l.WriteTimeout; !leaves {
		c.out = crossing{}
	} else if took, n := c.out.passed(batch, sent, now); late(took, grace, n) {
		return slowPeer("it has taken %d bytes of what is being written within %v", n, took, grace)
	}
	return nil
}
