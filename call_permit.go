package asterisque

import (
	"context"
	"runtime"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// permit is what a call from this side holds of the room of others until its end.
type permit struct {
	nest   *enclosure  // what it lends to calls within it; nil unless a handler made it
	window *callWindow // of its function; nil without
	cost   int64       // of its Open
}

// permit waits until a call from this side may be sent: nothing forbids it, the window of its
// function has room, and so have the peer and this session. It fills in what its Open says besides
// function and parameters; stream is what that says of Blocks, or nil. A call within another one
// waits for nothing but this session's outbound limit.
func (s *Session) permit(ctx context.Context, open *outbox.Message, cfg *callConfig, stream *codec.Meta) (p permit, a *Abort) {
	if open.Expires, a = s.lifetime(ctx, cfg.ttl); a != nil {
		return p, a
	}
	if p.nest, a = enclose(ctx, s, open.Function); a != nil {
		return p, a
	}
	open.Meta = p.nest.meta(cfg, stream)
	p.cost = s.costOf(open)
	if p.nest != nil {
		a = s.nesting.enter(&p)
	} else {
		a = s.enterRoom(ctx, &p, open.Function, cfg)
	}
	if a != nil {
		return permit{}, a
	}
	open.Held = heldOpen(open)
	if a = s.reserve(ctx, cfg.priority, open.Held); a != nil {
		s.unsent(p.nest, p.cost)
		s.over(&p)
		return permit{}, a
	}
	return p, nil
}

// enterRoom waits for the window of the function, and for room at the peer.
func (s *Session) enterRoom(ctx context.Context, p *permit, function uint16, cfg *callConfig) (a *Abort) {
	if p.window, a = s.enterWindow(ctx, function, cfg.front); a != nil {
		return a
	}
	if a = s.reserveOpen(ctx, p.cost, cfg.priority); a != nil {
		p.window.leave()
	}
	return a
}

// unsent gives back what the Open of a call, which is made within no other if nest is nil, would
// have used of the peer's room.
func (s *Session) unsent(nest *enclosure, cost int64) {
	if nest == nil {
		s.opens.giveBack(cost)
	}
}

// over gives back what a call has held until its end.
func (s *Session) over(p *permit) {
	p.window.leave()
	if p.nest != nil {
		s.nesting.leave(p)
	}
}

// costOf returns what open costs the peer.
func (s *Session) costOf(open *outbox.Message) int64 {
	cost := uint64(len(open.Payload)) + s.terms.PeerOverhead
	if m := open.Meta; m != nil {
		cost += uint64(len(m.Trace) + len(m.Key))
		if m.Stream {
			cost += s.terms.PeerEarly
		}
	}
	return int64(cost)
}

// openWindow sets a window for the Blocks of the callee aside, before the Open of a stream may
// leave, so that it holds up no other. It waits for that, but not for a call within another one,
// whose window is from the room for these.
func (s *Session) openWindow(ctx context.Context, cfg *callConfig) (h limits.Hold, granted uint64, a *Abort) {
	if s.terms.Room == nil {
		return h, pipe.Unlimited, nil
	}
	if c, ok := ctx.Value(incomingKey{}).(*incoming); ok && c.s == s {
		if !s.terms.Room.Nest(&h) {
			return h, 0, neverSent(codec.ErrOverloaded.Withf("the windows of streams within calls hold all of their room, %d bytes", s.calls.plan.NestedOwn))
		}
		return h, h.Bytes(), nil
	}
	turn := make(chan struct{})
	c := &limits.Claim{Priority: int8(cfg.priority), Granted: func() { close(turn) }}
	if !s.terms.Room.Open(c) {
		if s.terms.Left.Load() > 0 {
			runtime.GC() // what nobody can read any more may hold all of it
		}
		if a := s.awaitWindow(ctx, c, turn); a != nil {
			return h, 0, a
		}
	}
	s.terms.Room.Opened(c, &h)
	return h, h.Bytes(), nil
}

// awaitWindow waits for the turn of c.
func (s *Session) awaitWindow(ctx context.Context, c *limits.Claim, turn chan struct{}) (a *Abort) {
	defer s.waits.begin(s, waitWindow)()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		l := s.terms.Room.Load()
		a = neverSent(waitedFor(ctx, "room for a window at the caller: %d bytes are promised to streams, and %d wait", l.Windows, l.Opening))
	case <-s.ctx.Done():
		a = neverSent(s.cause())
	}
	waited, granted := s.terms.Room.Withdraw(c)
	limits.Grant(granted)
	if !waited { // its turn came at the same moment
		<-turn
		var h limits.Hold
		s.terms.Room.Opened(c, &h)
		limits.Grant(s.terms.Room.End(&h))
	}
	return a
}
