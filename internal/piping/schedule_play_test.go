package piping_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

func (s *schedule) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf(format, args...))
}

// one returns one of list.
func one[T any](s *schedule, list []T) T { return list[s.rnd.IntN(len(list))] }

// step takes one random step.
func (s *schedule) step() {
	s.steps++
	i := s.rnd.IntN(2)
	side := s.sides[i]
	if s.rnd.IntN(4) > 0 { // the session continues
		s.move(side)
	} else {
		s.act()
	}
	s.settle()
	s.check()
}

// move moves one message, or none.
func (s *schedule) move(side *side) {
	switch s.rnd.IntN(4) {
	case 0:
		side.deliver()
	case 1:
		side.tell()
	case 2:
		if len(s.calls) > 0 {
			s.endOf(one(s, s.calls), side).depart()
		}
	case 3:
		s.cross(side)
	}
}

func (s *schedule) endOf(c *call, side *side) *end {
	if c.ends[0].s == side {
		return c.ends[0]
	}
	return c.ends[1]
}

// cross completes a call of Send that waits for the session.
func (s *schedule) cross(side *side) {
	side.mu.Lock()
	defer side.mu.Unlock()
	if len(side.crossing) == 0 {
		return
	}
	k := s.rnd.IntN(len(side.crossing))
	x := side.crossing[k]
	side.crossing = slices.Delete(side.crossing, k, k+1)
	switch s.rnd.IntN(8) {
	case 0:
		x.on <- codec.ErrTooLarge
	case 1:
		x.on <- errDrop
		s.lost++
	default:
		x.on <- nil
	}
}

// size returns the size of a Block.
func (s *schedule) size() int {
	switch s.rnd.IntN(4) {
	case 0:
		return s.rnd.IntN(10)
	case 1:
		return s.rnd.IntN(early - overhead + 1)
	default:
		return s.rnd.IntN(8_001)
	}
}

// act takes a step of an application.
func (s *schedule) act() {
	if len(s.calls) < 2 || len(s.calls) < 6 && s.rnd.IntN(10) == 0 {
		side := one(s, s.sides[:])
		if caller, callee := side.open(0); caller != nil {
			s.calls = append(s.calls, &call{ends: [2]*end{caller, callee}})
			s.note("open")
		}
		return
	}
	n := s.rnd.IntN(len(s.calls))
	c := s.calls[n]
	k := s.rnd.IntN(2)
	e := c.ends[k]
	if k == 1 && !c.begun {
		if c.begun = e.begin(); !c.begun {
			return
		}
		s.note("%d begins", n)
	}
	switch x := s.rnd.IntN(100); {
	case x < 30:
		size := s.size()
		s.note("%d.%d sends %d", n, k, size)
		s.do("send", e, size, func(ctx context.Context) (pipe.Block, error) {
			return pipe.Block{}, e.Send(ctx, make([]byte, size))
		})
	case x < 60:
		s.note("%d.%d receives", n, k)
		s.do("recv", e, 0, func(ctx context.Context) (pipe.Block, error) { return e.Recv(ctx) })
	case x < 64:
		size := s.size()
		s.note("%d.%d sends %d, or loses it", n, k, size)
		s.do("send", e, size, func(ctx context.Context) (pipe.Block, error) {
			return pipe.Block{}, e.Send(ctx, make([]byte, size), pipe.WithLoss(64))
		})
	case x < 68:
		s.do("await", e, 0, func(ctx context.Context) (pipe.Block, error) {
			fits, err := e.AwaitCredit(ctx)
			if err == nil && fits < early-overhead {
				err = errors.New("less than comes by itself")
			}
			return pipe.Block{}, err
		})
	case x < 72:
		size := s.size()
		_, err := e.Post(make([]byte, size))
		s.note("%d.%d posts %d: %v", n, k, size, err)
	case x < 75:
		stays := uint64(early + s.rnd.IntN(2)*s.rnd.IntN(5_000))
		sent, _ := e.end().Idle(piping.Unlimited, stays)
		e.end().Idle(sent, stays)
		s.note("%d.%d is idle, and keeps %d", n, k, stays)
	case x < 84:
		if len(s.ops) > 0 {
			o := one(s, s.ops)
			s.note("%s is canceled", o.kind)
			o.cancel()
		}
	case x < 88:
		s.drop(e)
	case x < 91:
		s.note("%d.%d pauses", n, k)
		e.StopReading()
	case x < 95:
		s.note("%d.%d resumes", n, k)
		e.StartReading()
	case x < 96:
		s.note("%d.%d stops", n, k)
		e.Stop()
	case x < 97:
		s.note("%d.%d ends", n, k)
		e.CloseSend()
	case x < 98:
		s.note("%d.%d aborts", n, k)
		c.over = true
		e.Abort(nil)
	case x < 99:
		s.note("%d.1 closes", n)
		c.over = true
		c.ends[1].end().Close(nil)
	case c.over:
		s.remove(n)
	}
}

// remove removes a call that is over, on both sides, together with its leftover.
func (s *schedule) remove(n int) {
	for _, e := range s.calls[n].ends {
		if !e.end().Account().Over {
			return
		}
	}
	for _, e := range s.calls[n].ends {
		e.Abort(nil)
		s.asks += e.asks
		s.back += e.back
		s.skips += e.skips
		e.mu.Lock()
		queued := len(e.queue)
		e.mu.Unlock()
		for range queued {
			e.depart()
		}
	}
	s.calls = slices.Delete(s.calls, n, n+1)
}

// drop drops a queued Block, as if the Block had expired.
func (s *schedule) drop(e *end) {
	for i, m := range e.queue {
		if _, ok := m.(piping.Outgoing); ok && s.rnd.IntN(2) == 0 {
			s.note("a Block is dropped")
			s.lost++
			e.drop(i)
			return
		}
	}
}

func (s *schedule) do(kind string, e *end, n int, f func(ctx context.Context) (pipe.Block, error)) {
	s.ops = append(s.ops, &op{doing: do(f), kind: kind, e: e, n: n})
}
