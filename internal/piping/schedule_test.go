package piping_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

var (
	schedules = flag.Int("schedules", 600, "how many random schedules are run")
	firstSeed = flag.Uint64("seed", 0, "of the first schedule")
)

// schedule is two sides with pipes that share very little room, and applications that take random
// steps, one after the other.
type schedule struct {
	shelters                                bool // for Blocks for which no receiver waits any more
	t                                       *testing.T
	rnd                                     *rand.Rand
	plan                                    limits.Plan
	sides                                   [2]*side
	calls                                   []*call
	ops                                     []*op
	steps                                   int
	trace                                   []string
	sent, received, asks, back, lost, skips int
}

// call is a pipe with both ends.
type call struct {
	ends  [2]*end // the caller, and the callee
	begun bool
	over  bool
}

// op is a blocking call of an application.
type op struct {
	*doing
	kind string
	e    *end
	n    int
}

// TestSchedule_Random runs random schedules. After each step, sent Blocks are within their granted
// credit, and the used room equals the sum over the pipes. When no message can move any more, no
// caller waits that could continue. At the end all room is free again.
func TestSchedule_Random(t *testing.T) {
	var all schedule
	for i := range uint64(*schedules) {
		seed := *firstSeed + i
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSchedule(t, seed)
				defer func() {
					if t.Failed() {
						for _, o := range s.ops {
							o.cancel()
						}
						for _, c := range s.calls {
							c.ends[0].Abort(nil)
							c.ends[1].Abort(nil)
						}
						for _, line := range s.trace[max(0, len(s.trace)-60):] {
							t.Log(line)
						}
					}
				}()
				for range 600 {
					s.step()
				}
				s.end()
				all.steps += s.steps
				all.sent += s.sent
				all.received += s.received
				all.asks += s.asks
				all.back += s.back
				all.skips += s.skips
				all.lost += s.lost
			})
		})
		if !ok {
			return
		}
	}
	t.Logf("%d steps: %d Blocks sent, %d received, %d dropped, %d Asks, %d Allows given back, %d Skips",
		all.steps, all.sent, all.received, all.lost, all.asks, all.back, all.skips)
}

func newSchedule(t *testing.T, seed uint64) *schedule {
	s := &schedule{t: t, rnd: rand.New(rand.NewPCG(seed, 0))}
	s.plan = limits.Plan{
		Window: early, Workers: 1 + s.rnd.IntN(3), Callers: 1 + s.rnd.IntN(3), Spare: s.rnd.IntN(4) * s.rnd.IntN(5000),
		Large: 8_000 + overhead,
	}
	s.sides[0], s.sides[1] = newSides(t, s.plan, uint64(s.rnd.IntN(16_000)))
	s.shelters = s.rnd.IntN(2) == 0
	for _, side := range s.sides {
		if s.shelters {
			side.shelter = 10_000
		}
		side.judge = func() bool { return s.rnd.IntN(2) == 0 }
		side.cross = func() bool { return s.rnd.IntN(4) == 0 }
	}
	return s
}

// settle waits until every application blocks, and evaluates the completed calls.
func (s *schedule) settle() {
	synctest.Wait()
	s.ops = slices.DeleteFunc(s.ops, func(o *op) bool {
		if !o.isDone() {
			return false
		}
		var a *codec.Abort
		switch {
		case o.err == nil && o.kind == "send":
			s.sent++
		case o.err == nil && o.kind == "recv":
			s.received++
		case o.err == nil, o.err == io.EOF, errors.Is(o.err, pipe.ErrEnded), errors.Is(o.err, pipe.ErrClosed):
		default:
			require.ErrorAs(s.t, o.err, &a)
			require.NotEqual(s.t, codec.ErrWindow.Code, a.Code, "an honest peer never exceeds its window")
		}
		return true
	})
}

// check compares the accounts of all pipes with those of the sides. It runs often, and therefore
// tests before it calls require.
func (s *schedule) check() {
	for i, side := range s.sides {
		var windows, debts, messages int
		for n, c := range s.calls {
			e := s.endOf(c, side)
			a := e.end().Account()
			waits, _ := e.end().Waiting()
			messages += waits
			windows += int(a.Hold)
			debts += a.Debt
			caller := e == c.ends[0]
			place := a.Hold + uint64(a.Debt) + uint64(a.Sheltered)
			switch {
			case !caller && !c.begun:
				place = early // paid with the Open
			case a.Over && s.shelters:
				place = a.Inbox // a sheltered Block may find no other room when the call ends
			case a.EndedThere:
				// the guarantee of a handler without a waiting Open is not available to other pipes
				place += early
			}
			if a.Inbox > place {
				require.Fail(s.t, "waiting Blocks have no room", "call %d, side %d: %+v", n, i, a)
			}
			granting := !a.Over && !a.EndedThere && !a.Stopped && (caller || c.begun)
			if granting && a.Granted > a.Taken+a.Hold {
				require.Fail(s.t, "granted credit has no room", "call %d, side %d: %+v", n, i, a)
			}
		}
		load := side.room.Load()
		if side.overrun > 0 || windows != load.Windows || debts != load.Large || messages != side.messages || load.Large > s.plan.Large ||
			load.Windows > s.plan.Spare+(s.plan.Workers+s.plan.Callers)*s.plan.Window {
			require.Fail(s.t, "the accounts do not agree", "side %d: windows %d, large %d, messages %d and %d, overrun %d, %+v",
				i, windows, debts, messages, side.messages, side.overrun, load)
		}
	}
	if s.rnd.IntN(50) == 0 {
		s.rest()
	}
}

// rest moves all messages that can move, and checks the callers that still wait.
func (s *schedule) rest() {
	for more := true; more; {
		more = false
		for _, side := range s.sides {
			for len(side.crossing) > 0 {
				s.cross(side)
				s.settle()
				more = true
			}
			for side.tell() || side.deliver() {
				more = true
				s.settle()
			}
			for _, c := range s.calls {
				for s.endOf(c, side).depart() {
					more = true
					s.settle()
				}
			}
		}
	}
	for i, side := range s.sides {
		s.stands(i, side)
	}
}

// stands requires that no caller waits on side that could continue.
func (s *schedule) stands(i int, side *side) {
	held := false // the room for large Blocks, by a call in a pause
	for n, c := range s.calls {
		a := s.endOf(c, side).end().Account()
		held = held || a.Debt > 0
		if a.Waiting && !a.Paused && (a.Debt > 0 || a.Inbox > 0) {
			require.Fail(s.t, "an Allow that is not used, or a Block that is not taken", "call %d, side %d: %+v", n, i, a)
		}
	}
	if !held && side.room.Load().Asking > 0 {
		require.Fail(s.t, "a claim that is not granted", "side %d", i)
	}
	for n, c := range s.calls {
		to := s.endOf(c, side)
		a := to.end().Account()
		for _, o := range s.ops {
			if o.e == to.other && o.kind != "recv" && a.Waiting && !a.Paused && !held {
				require.Fail(s.t, "a call that could continue stands still", "call %d, side %d: %s of %d bytes: from %+v to %+v",
					n, i, o.kind, o.n, to.other.end().Account(), a)
			}
		}
	}
}

// end ends all calls, and checks that no room is held.
func (s *schedule) end() {
	for _, c := range s.calls {
		c.ends[s.rnd.IntN(2)].Abort(nil)
		s.settle()
	}
	s.rest()
	for _, c := range s.calls {
		for _, e := range c.ends {
			e.Abort(nil)
			s.asks += e.asks
			s.back += e.back
			s.skips += e.skips
		}
	}
	s.settle()
	require.Empty(s.t, s.ops)
	for _, side := range s.sides {
		require.Equal(s.t, limits.Load{}, side.room.Load())
		require.Zero(s.t, side.messages)
		require.Zero(s.t, side.bytes)
		require.Zero(s.t, side.terms.Left.Load())
	}
}

// TestSchedule_Concurrent has senders and receivers of several streams, with contexts that end,
// while their messages move.
func TestSchedule_Concurrent(t *testing.T) {
	const streams, senders, blocks = 3, 4, 150
	least := limits.Plan{Window: early, Workers: streams, Callers: streams, Spare: 4_000, Large: 8_000 + overhead}
	a, b := newSides(t, least, 16_000)
	a.shelter, b.shelter = 1<<20, 1<<20
	var ends []*end
	for range streams {
		caller, callee := a.open(0)
		require.True(t, callee.begin())
		ends = append(ends, caller, callee)
	}
	stop := make(chan struct{})
	var movers, all sync.WaitGroup
	for _, side := range []*side{a, b} {
		movers.Go(func() {
			for {
				more := side.tell()
				for _, e := range ends {
					more = e.s == side && e.depart() || more
				}
				more = side.deliver() || more
				select {
				case <-stop:
					return
				default:
				}
				if !more {
					time.Sleep(50 * time.Microsecond) // senders and receivers are at work
				}
			}
		})
	}
	var sent, received atomic.Int64
	for i, e := range ends {
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		var here sync.WaitGroup
		for range senders {
			mine := rand.New(rand.NewPCG(rnd.Uint64(), 2))
			here.Go(func() {
				for range blocks {
					d := time.Duration(mine.IntN(20)) * time.Millisecond
					if mine.IntN(2) == 0 {
						d = time.Hour // the call continues by itself
					}
					ctx, cancel := context.WithTimeout(background, d)
					if err := e.Send(ctx, make([]byte, mine.IntN(8_001))); err == nil {
						sent.Add(1)
					} else if ctx.Err() == nil {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		all.Go(func() {
			here.Wait()
			require.NoError(t, e.CloseSend())
		})
		for range 2 {
			mine := rand.New(rand.NewPCG(rnd.Uint64(), 3))
			all.Go(func() {
				for {
					ctx, cancel := context.WithTimeout(background, time.Duration(mine.IntN(20))*time.Millisecond)
					_, err := e.Recv(ctx)
					ended := ctx.Err() != nil
					cancel()
					switch {
					case err == nil:
						received.Add(1)
					case err == io.EOF:
						return
					case !ended:
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	close(stop)
	movers.Wait()
	require.Equal(t, sent.Load(), received.Load())
	for _, e := range ends {
		e.Abort(nil)
	}
	for _, side := range []*side{a, b} {
		require.Equal(t, limits.Load{}, side.room.Load())
		require.Zero(t, side.overrun)
		require.Zero(t, side.messages)
		require.Equal(t, 1<<20, side.shelter)
	}
	t.Log(sent.Load(), "of", 2*streams*senders*blocks, "Blocks were sent")
}
