package asterisque

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// Liveness: whoever has sent nothing for a while sends a Ping, so that the peer hears something,
// and whoever has heard nothing for a longer while gives the peer up. A session that does not read,
// because it is at its soft limit or paused, sends Pings all the same, and does not give up a peer
// that it does not listen to. A message that has begun, in either direction, has to go on: see
// crossing.
//
// What the peer has announced only ever shortens what this side does.
//
// Sessions are looked at from time to time (rounds), and then it is seen whether counters have
// changed: traffic itself costs no clock.

// liveness is what a session remembers between two looks.
type liveness struct {
	// after how long without sending a Ping is sent; 0: never, and the peer is not given up for its
	// silence
	interval time.Duration
	timeout  time.Duration // after how long without hearing the peer is given up
	place    int           // among the sessions that are looked at together; belongs to rounds

	frames  atomic.Uint64 // that have arrived; counted if the Wire does not count bytes
	batches atomic.Uint64 // that have been written
	busy    atomic.Int32  // see deaf and inside
	writing atomic.Bool   // a write has begun that may have to wait
	anew    atomic.Bool   // there is another Wire since the last look

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

// deaf reports whether the reader does not wait for the peer.
func (l *liveness) deaf() bool { return l.busy.Load() != 0 }

// inside reports whether the reader runs code of the application.
func (l *liveness) inside() bool { return l.busy.Load() >= insideCode }

// defaultTimeout is after how long without hearing the peer is given up, if nothing else was set.
const defaultTimeout = 45 * time.Second

// These bound what a peer may ask for. One that wants to hear sooner sends Pings itself, and is
// answered. One that gives up sooner cannot count on this side's Pings.
const (
	leastInterval = time.Second
	leastTimeout  = 3 * time.Second
)

// agree takes what the peer said of itself: the shorter interval is kept by both, and with three
// Pings in the shorter timeout one of them may be late. A peer that sends no Pings is sent them all
// the same.
func (l *liveness) agree(cfg *config, a *agreement, dialled bool) {
	if cfg.pingInterval == 0 {
		return
	}
	l.interval, l.timeout = cfg.pingInterval, cfg.pingTimeout
	if a.ping > 0 {
		l.interval = min(l.interval, max(a.ping, leastInterval))
	}
	if a.timeout > 0 {
		l.interval = min(l.interval, max(a.timeout, leastTimeout)/3)
	}
	if !dialled {
		// so that on an idle session only one side begins, and the other answers
		l.interval += l.interval / 4
	}
}

// grace returns how long a message that has begun to arrive may take, besides what its size allows.
func (c *config) grace() time.Duration {
	if c.pingInterval == 0 {
		return defaultTimeout
	}
	return c.pingTimeout
}

// look is called from time to time, with the time by the node's clock.
func (l *liveness) look(s *Session, now time.Duration) {
	if l.anew.Swap(false) {
		l.heard, l.said, l.crossings = 0, 0, nil
	}
	w := s.currentWire()
	received, sent, metered := l.progress(w)
	if received != l.received || l.deaf() || l.heard == 0 {
		l.received, l.heard = received, now
	}
	if sent != l.sent || l.said == 0 {
		l.sent, l.said = sent, now
	}
	arriving := receiving(w)
	l.part.Tell(arriving)
	writing, silence := l.writing.Load(), l.silence(s)
	var slow *Abort
	if metered {
		slow = l.tooSlow(s.cfg, arriving > 0, received, sent, now)
	}
	switch {
	case slow != nil:
		s.lost(slow)
	case l.interval > 0 && now-l.heard >= l.timeout:
		s.lost(codec.ErrUnavailable.Withf("the peer is lost: nothing was heard of it for %v", l.timeout))
	case writing && now-l.said >= s.cfg.writeTimeout:
		s.lost(codec.ErrUnavailable.Withf("the peer is lost: it has taken nothing for %v", s.cfg.writeTimeout))
	case l.interval > 0 && !writing && now-l.said >= silence:
		l.said = now
		l.pinged.Store(int64(now))
		s.control(message.Ping{N: l.ping.Add(1)})
	}
}

// silence returns after how long without sending a Ping is sent. While the session stands at its
// inbound soft limit, and the application takes nothing, that is soon: what does not read learns
// only from a write that the peer has closed the Wire. As long as the application goes on, it comes
// to the end of what the peer has left by itself.
func (l *liveness) silence(s *Session) time.Duration {
	before := l.taken
	l.taken = s.inbound.Relieved()
	if l.taken == before && l.deaf() && s.pause.gate.Load() == nil && s.inbound.State() >= limits.Soft {
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

// pong takes the answer to a Ping.
func (l *liveness) pong(n uint64, now time.Duration) {
	if n != l.ping.Load() {
		return
	}
	if sent := l.pinged.Swap(0); sent > 0 {
		l.trip.Store(int64(now) - sent)
	}
}

// restart begins anew over another Wire.
func (l *liveness) restart() {
	l.anew.Store(true)
	l.pinged.Store(0)
}

// RoundTrip returns how long the latest Ping of this side took there and back, 0 before the first
// one. Pings are sent only while the session is idle: see [Timeouts].Ping.
func (s *Session) RoundTrip() time.Duration { return time.Duration(s.live.trip.Load()) }
