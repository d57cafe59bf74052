package asterisque

import (
	"fmt"

	"github.com/asterisque-go/asterisque/limits"
)

// reporter returns what a counter calls when the state of its direction changes.
func (s *Session) reporter(d Direction) func(limits.State) {
	return func(state limits.State) {
		if state >= limits.Soft {
			s.cfg.log.Info("limit reached", "session", s, "direction", d, "state", state)
		}
		switch {
		case d == Outbound && state == limits.Soft:
			s.carrier.Thin()
		case d == Inbound:
			s.carrier.InboundChanged(state)
		}
		(*watched)(s).limitChanged(d, state)
	}
}

// SetLimits replaces the limits of both directions, from now on. A direction that is beyond its new
// soft limit behaves as if it had just reached it. The error names the mark that does not fit, and
// then nothing has changed. What the peer was promised stands; what it is promised from now on
// keeps to the new inbound soft limit, as far as that is at least eight times as large as the
// largest message.
func (s *Session) SetLimits(inbound, outbound limits.Limits) error {
	if s == nil {
		return errNoSession
	}
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

// Pause stops reading the Wire after the frame that is being read, until Unpause. The transport
// then holds up the peer, and calls of either side wait. A session that was paused by its
// application is not taken for stalled. Once in each ping interval a frame passes all the same, as
// long as the inbound hard limit is far: otherwise a peer that is gone would not be noticed behind
// what it has left.
func (s *Session) Pause() {
	if s != nil {
		s.carrier.Pause()
	}
}

// Unpause goes on with reading after Pause.
func (s *Session) Unpause() {
	if s != nil {
		s.carrier.Unpause()
	}
}

// Limits returns the limits of a direction that are in force.
func (s *Session) Limits(d Direction) limits.Limits {
	switch {
	case s == nil:
		return limits.Limits{}
	case d == Inbound:
		return s.inbound.Limits()
	}
	return s.outbound.Limits()
}
