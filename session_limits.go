package asterisque

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/limits"
)

// Direction is one of the two ways of a session's messages, seen from this side.
type Direction uint8

const (
	Inbound  Direction = iota // received, and not yet taken by the application
	Outbound                  // sent, and not yet given to the Wire
)

func (d Direction) String() string {
	if d == Inbound {
		return "inbound"
	}
	return "outbound"
}

// reporter returns what a counter calls when the state of its direction changes.
func (s *Session) reporter(d Direction) func(limits.State) {
	return func(state limits.State) {
		if state >= limits.Soft {
			s.cfg.log.Info("limit reached", "session", s, "direction", d, "state", state)
		}
		switch {
		case d == Outbound && state == limits.Soft:
			s.out.Thin()
		case d == Inbound && state == limits.Soft:
			s.stall.begin(s)
		case d == Inbound:
			s.stall.end()
		}
		if s.cfg.onState != nil {
			s.shared.reports.add(s, "OnState", keepLast+int(d), func() { s.cfg.onState(s, d, state) })
		}
	}
}

// SetLimits replaces the limits of both directions, from now on. A direction that is beyond its new
// soft limit behaves as if it had just reached it. The error names the mark that does not fit, and
// then nothing has changed. What the peer was promised stands; what it is promised from now on
// keeps to the new inbound soft limit, as far as that is at least eight times as large as the
// largest message.
func (s *Session) SetLimits(inbound, outbound limits.Limits) error {
	in, err := inbound.Check()
	if err != nil {
		return fmt.Errorf("asterisque: inbound: %w", err)
	}
	out, err := outbound.Check()
	if err != nil {
		return fmt.Errorf("asterisque: outbound: %w", err)
	}
	if s.inbound.SetLimits(in) == limits.Hard {
		s.fail(hardLimit(Inbound, s.inbound))
	}
	if s.outbound.SetLimits(out) == limits.Hard {
		s.fail(hardLimit(Outbound, s.outbound.Counter))
	}
	s.outbound.admit()
	s.resize(in.Soft)
	return nil
}

// resize lets what is promised from now on keep to a soft limit.
func (s *Session) resize(soft limits.Amount) {
	if s.terms.Room == nil {
		return
	}
	bytes := soft.Bytes
	if most := soft.Messages * int(s.terms.Overhead); most > 0 && (bytes == 0 || most < bytes) {
		bytes = most // each message costs so much at least
	}
	p, granted := s.terms.Room.Resize(bytes)
	limits.Grant(granted)
	s.calls.resize(p)
}

// Pause stops reading the Wire after the frame that is being read, until Resume. The transport then
// holds up the peer, and calls of either side wait. A session that was paused by its application is
// not taken for stalled. Once in each ping interval a frame passes all the same, as long as the
// inbound hard limit is far: otherwise a peer that is gone would not be noticed behind what it has
// left.
func (s *Session) Pause() { s.pause.begin() }

// Resume goes on with reading after Pause.
func (s *Session) Resume() { s.pause.end() }

// pause is a gate that the application closes and opens. Looking at it costs one atomic read.
type pause struct {
	gate atomic.Pointer[chan struct{}] // nil while it is open; the channel is closed when it opens
}

func (p *pause) begin() {
	c := make(chan struct{})
	p.gate.CompareAndSwap(nil, &c)
}

func (p *pause) end() {
	if c := p.gate.Swap(nil); c != nil {
		close(*c)
	}
}

// waitInbound waits while the session is paused or at its inbound soft limit. It reports false if
// the Wire is lost or the session ends meanwhile. From time to time it reports true all the same:
// then one frame may pass, as long as the hard limit is far, so that a dead peer is noticed
// although frames of it are left.
func (s *Session) waitInbound() bool {
	if s.pause.gate.Load() == nil && s.inbound.Room() == nil {
		return true
	}
	s.writeAnswers()
	s.live.busy.Add(heldUp)
	defer s.live.busy.Add(-heldUp)
	var thirst <-chan time.Time
	if s.live.interval > 0 {
		t := time.NewTicker(s.live.interval)
		defer t.Stop()
		thirst = t.C
	}
	for {
		if gate := s.pause.gate.Load(); gate != nil {
			if over, ok := s.waitForSign(*gate, thirst); over {
				return ok
			}
		} else if room := s.inbound.Room(); room != nil {
			s.stops.Add(1)
			begin := s.shared.now()
			over, ok := s.waitForSign(room, thirst)
			s.stopped.Add(int64(s.shared.now() - begin))
			if over {
				return ok
			}
		} else {
			return true
		}
	}
}

// waitForSign waits for a gate or for room, and then over is false. Otherwise ok is as for
// waitInbound.
func (s *Session) waitForSign(sign <-chan struct{}, thirst <-chan time.Time) (over, ok bool) {
	select {
	case <-sign:
		return false, false
	case <-thirst:
		far := s.farFromHard(s.inbound.Held())
		return far, far
	case <-s.wireEnd():
	case <-s.ctx.Done():
	}
	return true, false
}

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

// begin is called when the session reaches the limit, end when it leaves it.
func (w *stall) begin(s *Session) {
	w.taken.Store(s.inbound.Relieved())
	w.idle.Store(0)
	t := time.AfterFunc(s.stallPeriod(), func() { w.check(s) })
	if old := w.timer.Swap(t); old != nil {
		old.Stop()
	}
}

// stallPeriod returns how often it is looked whether the application has taken something.
func (s *Session) stallPeriod() time.Duration {
	if s.live.interval > 0 {
		return s.cfg.stall
	}
	return min(s.cfg.stall, probing)
}

func (w *stall) end() {
	if t := w.timer.Swap(nil); t != nil {
		t.Stop()
	}
}

func (w *stall) check(s *Session) {
	t, period := w.timer.Load(), s.stallPeriod()
	taken := s.inbound.Relieved()
	switch {
	case t == nil || s.ctx.Err() != nil:
		return
	case w.taken.Swap(taken) != taken || s.pause.gate.Load() != nil:
		w.idle.Store(0)
	case time.Duration(w.idle.Add(int64(period))) >= s.cfg.stall:
		s.fail(codec.ErrStalled.Withf("%v wait, and the application has taken none for %v", s.inbound.Held(), s.cfg.stall))
		return
	case s.live.interval == 0:
		s.control(message.Ping{N: s.live.ping.Add(1)})
	}
	t.Reset(period)
}

// farFromHard reports whether held is not halfway from the soft limit to the hard one.
func (s *Session) farFromHard(held limits.Amount) bool {
	l := s.inbound.Limits()
	return (l.Hard.Messages == 0 || held.Messages < (l.Soft.Messages+l.Hard.Messages)/2) && (l.Hard.Bytes == 0 || held.Bytes < (l.Soft.Bytes+l.Hard.Bytes)/2)
}

// waitOutbound holds a worker back while the session is at its outbound soft limit, so that results
// do not pile up. At the inbound soft limit it does not: there the calls that wait have to be taken
// before reading can go on, and two peers that wait for each other's reading would wait for ever.
func (s *Session) waitOutbound() {
	for room := s.outbound.Room(); room != nil; room = s.outbound.Room() {
		full := s.inbound.Full()
		if full == nil {
			return
		}
		select {
		case <-room:
		case <-full:
		case <-s.ctx.Done():
			return
		}
	}
}

// mustWaitOutbound reports whether waitOutbound would wait.
func (s *Session) mustWaitOutbound() bool {
	return s.outbound.State() >= limits.Soft && s.inbound.State() < limits.Soft && s.ctx.Err() == nil
}

// arrived counts a message that waits for the application.
func (s *Session) arrived(held int) {
	if s.inbound.Add(held) == limits.Hard {
		s.fail(hardLimit(Inbound, s.inbound))
	}
}

func hardLimit(d Direction, c *limits.Counter) *Abort {
	return codec.ErrHardLimit.Withf("%v: %v wait, and the limit is %v", d, c.Held(), c.Limits().Hard)
}

// Limits returns the limits of a direction that are in force.
func (s *Session) Limits(d Direction) limits.Limits {
	if d == Inbound {
		return s.inbound.Limits()
	}
	return s.outbound.Limits()
}
