package asterisque

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// Liveness: whoever has sent nothing for a while sends a Ping, so that the peer hears something, and whoever has heard nothing for a longer while gives the peer up. A session that
// does not read, because it is at its soft limit or paused, sends Pings all the same, and does not give up a peer that it does not listen to.
//
// There is one timer for all sessions of a node, which looks from time to time whether counters have changed: traffic itself costs no clock.

// liveness is what a session remembers between two looks.
type liveness struct {
	interval time.Duration // after how long without sending a Ping is sent; 0: never, and the peer is never given up
	timeout  time.Duration // after how long without hearing the peer is given up
	patience time.Duration // after how long without progress a write is

	frames  atomic.Uint64 // that have arrived; counted if the Wire does not count bytes
	batches atomic.Uint64 // that have been written
	deaf    atomic.Bool   // the reader does not wait for the peer: a limit holds it up, or a handler
	writing atomic.Bool   // a write has begun that may have to wait
	anew    atomic.Bool   // there is another Wire since the last look

	// The rest belongs to look.
	received, sent uint64        // as of the last look
	heard, said    time.Duration // when they last changed, by the node's clock
	taken          uint64        // by the application, as of the last look

	ping   atomic.Uint64 // number of the latest Ping
	pinged atomic.Int64  // when it was sent, by the node's clock; 0 once it was answered
	trip   atomic.Int64  // the latest round trip, in nanoseconds
}

// leastInterval bounds what a peer may ask for. One that wants to hear sooner sends Pings itself, and is answered.
const leastInterval = time.Second

// agree takes what the peer said of itself: the shorter interval is kept by both, and with three Pings in the shorter timeout one of them may be late.
func (l *liveness) agree(cfg *config, a *agreement, dialled bool) {
	if cfg.pingInterval == 0 || a.ping == 0 {
		return
	}
	l.interval, l.timeout, l.patience = min(cfg.pingInterval, max(a.ping, leastInterval)), cfg.pingTimeout, cfg.writeTimeout
	if a.timeout > 0 {
		l.interval = min(l.interval, max(a.timeout/3, leastInterval))
	}
	if !dialled {
		l.interval += l.interval / 4 // so that on an idle session only one side begins, and the other answers
	}
}

// looks is how often sessions are looked at in an interval.
const looks = 8

// look is called from time to time, with the time by the node's clock.
func (l *liveness) look(s *Session, now time.Duration) {
	if l.anew.Swap(false) {
		l.heard, l.said = 0, 0
	}
	received, sent := l.progress(s)
	if received != l.received || l.deaf.Load() || l.heard == 0 {
		l.received, l.heard = received, now
	}
	if sent != l.sent || l.said == 0 {
		l.sent, l.said = sent, now
	}
	writing, silence := l.writing.Load(), l.silence(s)
	switch {
	case now-l.heard >= l.timeout:
		s.lost(codec.ErrUnavailable.Withf("the peer is lost: nothing was heard of it for %v", l.timeout))
	case writing && now-l.said >= l.patience:
		s.lost(codec.ErrUnavailable.Withf("the peer is lost: it has taken nothing for %v", l.patience))
	case !writing && now-l.said >= silence:
		l.said = now
		l.pinged.Store(int64(now))
		s.control(codec.Ping{N: l.ping.Add(1)})
	}
}

// silence returns after how long without sending a Ping is sent. While the session stands at its inbound soft limit, and the application takes nothing, that is soon: what does not read learns only
// from a write that the peer has closed the Wire. As long as the application goes on, it comes to the end of what the peer has left by itself.
func (l *liveness) silence(s *Session) time.Duration {
	before := l.taken
	l.taken = s.inbound.Relieved()
	if l.taken == before && l.deaf.Load() && s.pause.gate.Load() == nil && s.inbound.State() >= limits.Soft {
		return min(l.interval, leastInterval)
	}
	return l.interval
}

// progress returns two numbers that change when something is received and sent.
func (l *liveness) progress(s *Session) (received, sent uint64) {
	if m, ok := s.currentWire().(wire.Meter); ok {
		return m.Progress()
	}
	return l.frames.Load(), l.batches.Load()
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

// RoundTrip returns how long the latest Ping of this side took there and back, 0 before the first one. Pings are sent only while the session is idle: see [WithPing].
func (s *Session) RoundTrip() time.Duration { return time.Duration(s.live.trip.Load()) }

// lookAfter lets the node look after s from now on.
func (n *Node) lookAfter(s *Session) {
	if s.live.interval == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sessions == nil {
		return
	}
	every := s.live.interval / looks
	if n.looking == nil {
		n.lookEvery = every
		n.looking = time.AfterFunc(every, n.lookAround)
	} else if every < n.lookEvery {
		n.lookEvery = every
		if n.looking.Stop() { // otherwise lookAround runs, and will see
			n.looking.Reset(every)
		}
	}
}

// lookAround looks at all sessions. It goes on for as long as there are any.
func (n *Node) lookAround() {
	now := n.now()
	for _, s := range n.Sessions() {
		if s.live.interval > 0 && !s.away.Load() {
			s.live.look(s, now)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.sessions) == 0 {
		n.looking = nil
		return
	}
	n.looking.Reset(n.lookEvery)
}
