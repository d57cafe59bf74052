package asterisque

import (
	"fmt"

	"github.com/asterisque-go/asterisque/limits"
)

// reporter returns the function that a counter calls when the state of its direction changes.
func (s *Session) reporter(d Direction) func(limits.State) {
	return func(state limits.State) {
		if state >= limits.Soft {
			s.cfg.log.Info("limit reached", "session", s, "direction", d, "state", state)
		}
		switch {
		case d == Outbound && state == limits.Soft:
			s.calls.Carrier.Thin()
		case d == Inbound:
			s.calls.Carrier.InboundChanged(state)
		}
		(*hookNotifier)(s).limitChanged(d, state)
	}
}

// SetLimits replaces the limits of both directions. A direction that is beyond its new soft limit
// behaves as if it had just reached the limit. The error names the invalid mark; on error the
// limits do not change. Existing grants to the peer remain; new grants keep to the new inbound soft
// limit, if that is at least eight times the largest message.
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
	s.calls.SetLimits(in, out)
	return nil
}

// StopReading stops reading the Wire after the frame that is being read, until StartReading. The
// transport then holds up the peer, and calls of either side wait. A paused session does not count
// as stalled. One frame in each ping interval still passes, unless the inbound hard limit is near:
// otherwise a lost peer would not be noticed behind its unread messages.
func (s *Session) StopReading() {
	if s != nil {
		s.calls.Carrier.StopReading()
	}
}

// StartReading resumes reading after StopReading.
func (s *Session) StartReading() {
	if s != nil {
		s.calls.Carrier.StartReading()
	}
}

// Limits returns the limits in force for a direction.
func (s *Session) Limits(d Direction) limits.Limits {
	switch {
	case s == nil:
		return limits.Limits{}
	case d == Inbound:
		return s.calls.Inbound.Limits()
	}
	return s.calls.Outbound.Limits()
}
