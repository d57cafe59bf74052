package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/piping"
)

// receive does what one frame, a message of type t, says. An error ends the session.
func (s *Session) receive(t message.Type, frame []byte) error {
	switch t {
	case message.OpenType:
		m, err := message.ParseOpen(frame)
		if err != nil {
			return err
		}
		return s.receiveOpen(&m)
	case message.BlockType:
		m, err := message.ParseBlock(frame)
		if err != nil {
			return err
		}
		return s.receiveBlock(m)
	case message.CloseType:
		m, err := message.ParseClose(frame)
		if err != nil {
			return err
		}
		return s.receiveClose(m)
	default:
		m, err := message.ParseControl(frame)
		if err != nil {
			return err
		}
		return s.receiveControl(m)
	}
}

func (s *Session) receiveOpen(m *message.Open) error {
	var within *outer
	if m.Meta.Nested {
		within = s.table.outer(m.Meta.Within)
	}
	h := s.service.find(m.Function)
	var refused *Abort
	switch {
	case h == nil:
		refused = codec.ErrNoFunction.Withf("function %d", m.Function)
	case m.Meta.Nested && within == nil:
		refused = codec.ErrCanceled.Withf("the call that it is made within is over")
	case within != nil && within.depth >= deepest:
		refused = codec.ErrOverloaded.Withf("the call is the %dth within each other, and %d is the deepest", within.depth+1, deepest)
	default:
		if !m.Meta.Nested {
			if refused = s.shared.budget.refusesCall(s.owner); refused != nil {
				break
			}
		}
		c := newServed(&s.exchange, m, h, within)
		ok, err := s.table.accept(c.id(), c)
		if ok {
			c.arrive()
		}
		if ok || err != nil {
			return err
		}
		c.freeParams()
		refused = errShutDown // Shutdown was called meanwhile, or the session has ended
		s.announceEnd()
	}
	if err := s.table.check(m.Pipe); err != nil {
		return err
	}
	cost := m.Cost(s.terms.Overhead, s.terms.Early)
	if beyond := s.calls.arrive(cost, m.Meta.Nested); beyond != nil {
		refused, cost = beyond, 0
	}
	s.turnAway(m, refused, cost)
	return nil
}

func (s *Session) receiveBlock(m message.Block) error {
	e, err := s.table.find(m.Pipe)
	if e == nil {
		return err // nil if the pipe is over: Blocks may cross its Close
	}
	return e.block(m)
}

func (s *Session) receiveClose(m message.Close) error {
	e, err := s.table.take(m.Pipe)
	if e == nil {
		return err
	}
	e.closed(m)
	return nil
}

func (s *Session) receiveControl(m message.Control) error {
	switch c := m.(type) {
	case message.Credit:
		return s.receiveCredit(c)
	case message.Stop:
		return s.toPipe(c.Pipe, func(p *piping.End) error { p.StopArrived(); return nil })
	case message.Ask:
		return s.toPipe(c.Pipe, func(p *piping.End) error {
			if !p.AskArrived(c.Sent, c.Total) {
				return violation("Ask for pipe %d after %d bytes, which is not what has arrived", c.Pipe, c.Sent)
			}
			return nil
		})
	case message.Allow:
		return s.toPipe(c.Pipe, func(p *piping.End) error { p.AllowArrived(c.Total); return nil })
	case message.Ping:
		s.carrier.Ping(c.N)
	case message.Pong:
		s.carrier.Pong(c.N)
	case message.Ack:
		if !s.carrier.Ack(c.Count) {
			return violation("Ack of %d frames, which is more than were sent", c.Count)
		}
	case message.Drain:
		s.table.drainThere(c)
		if s.outgoing.drain() {
			s.holder.sessionChanged()
		}
	case message.SessionClose:
		return carrier.EndedBy(c)
	case message.Sync:
		return violation("a second Sync")
	}
	return nil // an unknown Control is to be ignored
}

func (s *Session) receiveCredit(c message.Credit) error {
	if c.Opens {
		s.opens.grant(c.Limit)
		return nil
	}
	return s.toPipe(c.Pipe, func(p *piping.End) error { p.CreditArrived(c.Limit); return nil })
}

// toPipe hands the pipe of a Control to f, if that carries Blocks and is not over.
func (s *Session) toPipe(id uint64, f func(*piping.End) error) error {
	e, err := s.table.find(id)
	if e == nil {
		return err
	}
	if p := e.untyped(); p != nil {
		return f((*piping.End)(p))
	}
	return nil
}
