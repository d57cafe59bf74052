package carrier

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

// liveness detects a lost peer. It holds the state between two looks.
type liveness struct {
	*readHold // fixed

	// The next fields belong to look.
	received, sent uint64        // totals as of the last look
	heard, said    time.Duration // when the totals last changed; clock as for look
	taken          uint64        // by the application, as of the last look
	// partly transferred messages; nil until a transfer takes longer than a look
	crossings *transfers
	// bytes of the arriving message, for the owner of the session
	part flow.Part

	pinged atomic.Int64 // when the latest Ping was sent, by the node's clock; 0 when answered
	trip   atomic.Int64 // the latest round trip, in nanoseconds
}

// Pings are the keepalive parameters of the peer.
type Pings struct {
	Dialled bool // this side has connected
	Mute    bool // the peer need not answer Pings
	// announced by the peer; 0: not announced
	Interval, Timeout time.Duration
}

// Lower bounds for the announcements of a peer. A peer that needs a shorter interval sends Pings
// itself, and gets answers. A peer with a shorter timeout cannot rely on the Pings of this side.
const (
	leastInterval = time.Second
	leastSilence  = 3 * time.Second
)

// agree derives the interval from the announcements of the peer. Both sides use the shorter
// interval. Three Pings fit into the shorter timeout, so that one of them may be late. A peer that
// sends no Pings still receives them.
func (l *liveness) agree(p Pings) {
	if l.PingInterval == 0 || p.Mute {
		return
	}
	l.interval = l.PingInterval
	if p.Interval > 0 {
		l.interval = min(l.interval, max(p.Interval, leastInterval))
	}
	if p.Timeout > 0 {
		l.interval = min(l.interval, max(p.Timeout, leastSilence)/3)
	}
	if !p.Dialled {
		// so that on an idle session one side sends Pings and the other one answers
		l.interval += l.interval / 4
	}
}

// every returns the interval of looks. It has few different values: half of what the node itself
// needs, a quarter, and so on, so that peers share timers.
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

// look is called from time to time. now is the time by the node's clock, minus the time in which
// the process did not run. late reports that the process was stopped just now; then the peer is not
// judged.
func (l *liveness) look(now time.Duration, late bool) {
	if l.transport.changed() {
		l.heard, l.said, l.crossings = 0, 0, nil
		l.beginAgain()
	}
	w, _ := l.transport.present()
	received, sent, metered := l.meter.progress(w)
	if received != l.received || l.meter.held() || l.heard == 0 {
		l.received, l.heard = received, now
	}
	if sent != l.sent || l.said == 0 {
		l.sent, l.said = sent, now
	}
	arriving := receiving(w)
	l.part.Tell(arriving + l.held())
	if !late {
		l.endIdleBlocks(now, received, metered)
	}
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

// beginAgain resets the progress of unfinished messages, which continue over another Wire.
func (l *liveness) beginAgain() {
	if p := l.parts.Load(); p != nil {
		p.slow = transferProgress{}
		p.excuseAll()
	}
}

// stuck returns an error if the peer has begun a message in parts and transfers it, together with
// the frames that overtake it, too slowly. The time in which this side does not read does not
// count. If the Wire does not count bytes, a frame counts as the bytes that are due in a second.
func (l *liveness) stuck(received uint64, metered bool, now time.Duration) *codec.Abort {
	p := l.parts.Load()
	if p == nil {
		return nil
	}
	oldest := p.oldest()
	if oldest == 0 || l.meter.held() {
		p.slow = transferProgress{}
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

// endIdleBlocks ends the pipes of Blocks that have credit, and of which no part has come for the
// timeout of the session: other large Blocks wait for their room. The time in which this side does
// not read does not count. Without a count of the Wire the time alone decides.
func (l *liveness) endIdleBlocks(now time.Duration, received uint64, metered bool) {
	p := l.parts.Load()
	switch {
	case p == nil:
	case l.meter.held():
		p.excuseAll()
	default:
		if !metered {
			received = 0
		}
		for pipe, late := range p.idleBlocks(now, l.grace(), received) {
			if !p.receiver.BlockIdle(pipe, late) {
				p.excuse(pipe)
			}
		}
	}
}

// silence returns the idle time on the sending side after which this side sends a Ping. The time is
// short while the session is at its inbound soft limit and the application takes nothing: a side
// that does not read can learn only from a write that the peer has closed the Wire. While the
// application takes messages, the reader reaches the end of the Wire by itself.
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

// pong processes the answer to a Ping, and returns when that Ping was sent. ok is false for the
// answer to a mark.
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

// tooSlow returns an error if a message that has begun is transferred too slowly, and nil
// otherwise. The time in which this side does not read does not count.
func (l *liveness) tooSlow(receiving bool, received, sent uint64, now time.Duration) *codec.Abort {
	arrives, leaves := receiving && !l.meter.held(), l.meter.writing.Load()
	batch := l.meter.batches.Load()
	if number := l.out.Underway(); number > 0 {
		leaves, batch = true, math.MaxUint64-number // together with the messages that overtake it
	}
	if !arrives && !leaves {
		l.crossings = nil
		return nil
	}
	if l.crossings == nil {
		l.crossings = new(transfers)
	}
	c := l.crossings
	if grace := l.grace(); !arrives {
		c.in = transferProgress{}
	} else if took, n := c.in.passed(l.meter.frames.Load(), received, now); late(took, grace, n) {
		return slowPeer("%d bytes of a message have come within %v", n, took, grace)
	}
	if grace := l.WriteTimeout; !leaves {
		c.out = transferProgress{}
	} else if took, n := c.out.passed(batch, sent, now); late(took, grace, n) {
		return slowPeer("it has taken %d bytes of the batch being written within %v", n, took, grace)
	}
	return nil
}

// DefaultTimeout is the default of the silence after which the peer is lost.
const DefaultTimeout = 45 * time.Second
