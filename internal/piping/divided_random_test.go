package piping_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
)

// randomStreams is some streams between two sides, and a random schedule for them.
type randomStreams struct {
	t       *testing.T
	rnd     *rand.Rand
	plan    flow.Plan
	sides   [2]*side
	ends    []*end
	sending map[*end][]*doing // calls of Send
	waiting map[*end][]*doing // calls of Recv
	log     []string          // what the applications did
}

// newRandomStreams returns three streams, which have begun. The first one may end early.
func newRandomStreams(t *testing.T, seed uint64) *randomStreams {
	r := &randomStreams{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), sending: make(map[*end][]*doing), waiting: make(map[*end][]*doing)}
	r.plan = flow.Plan{Window: early, Workers: 3, Callers: 3, Large: 100_000 + overhead, Largest: 100_000}
	if spare := r.rnd.IntN(3) * 70_000; spare > 0 {
		r.plan.Elastic, r.plan.Room = spare, 8*spare
	}
	r.sides[0], r.sides[1] = newSides(t, r.plan, 512<<10)
	for _, s := range r.sides {
		s.reserved = 1 << 20
	}
	for i := range 3 {
		here, there := r.sides[0].open(int8(i % 2))
		require.True(t, there.begin())
		r.ends = append(r.ends, here, there)
	}
	return r
}

// step plays a random step.
func (r *randomStreams) step() {
	i := r.rnd.IntN(len(r.ends))
	e := r.ends[i]
	what, s := r.rnd.IntN(100), r.sides[r.rnd.IntN(2)]
	switch {
	case what < 20:
		s.tell()
	case what < 40:
		e.depart()
	case what < 60:
		s.deliver()
	case what < 72:
		n := []int{0, 100, early - overhead, early, 3000, 20_000, 100_000}[r.rnd.IntN(7)]
		r.log = append(r.log, fmt.Sprintf("%d sends %d", i, n))
		r.sending[e] = append(r.sending[e], e.send(n))
	case what < 84:
		r.log = append(r.log, fmt.Sprintf("%d receives", i))
		r.waiting[e] = append(r.waiting[e], e.recv())
	case what < 90:
		r.cancel(i, "gives up", r.sending[e])
	case what < 94:
		r.cancel(i, "stops waiting", r.waiting[e])
	case what < 95:
		_, err := e.Post(make([]byte, r.rnd.IntN(3000)))
		r.log = append(r.log, fmt.Sprintf("%d posts: %v", i, err))
	case what < 97:
		sent, _ := e.end().Idle(e.end().Account().Sent, early)
		r.log = append(r.log, fmt.Sprintf("%d is idle at %d", i, sent))
	case what < 98 && i < 2:
		r.end(i, e)
	case what == 98:
		e.StopReading()
		r.log = append(r.log, fmt.Sprintf("%d pauses", i))
	case what == 99:
		e.StartReading()
	}
	synctest.Wait()
}

// cancel cancels one of the calls.
func (r *randomStreams) cancel(i int, what string, calls []*doing) {
	if len(calls) > 0 {
		r.log = append(r.log, fmt.Sprintf("%d %s", i, what))
		calls[r.rnd.IntN(len(calls))].cancel()
	}
}

// end ends the stream of e, or one of its directions.
func (r *randomStreams) end(i int, e *end) {
	switch r.rnd.IntN(8) {
	case 0:
		r.log = append(r.log, fmt.Sprintf("%d stops", i))
		e.Stop()
	case 1:
		r.log = append(r.log, fmt.Sprintf("%d ends its direction: %v", i, e.CloseSend()))
	case 2:
		r.log = append(r.log, fmt.Sprintf("%d aborts", i))
		e.Abort(codec.ErrCanceled)
	}
}

// check requires that all promises have room, and that none was broken.
func (r *randomStreams) check() {
	for i, e := range r.ends {
		a := e.end().Account()
		require.LessOrEqual(r.t, loadOf(e.s.room).Large, r.plan.Large)
		require.Zero(r.t, e.s.overrun, "%d: %v", i, r.log)
		if !a.Over && !a.Stopped && !a.EndedThere {
			promised := max(a.Granted, a.Received, a.Taken) - a.Taken
			require.LessOrEqual(r.t, promised, a.Hold+uint64(a.Debt+a.Reserved), "%d: %v: %+v", i, r.log, a)
		}
	}
}

// carry sends and delivers everything.
func (r *randomStreams) carry() {
	for more := true; more; {
		more = false
		for _, e := range r.ends {
			for e.s.tell() || e.depart() || e.s.deliver() {
				synctest.Wait()
				more = true
			}
		}
	}
}

// settle has all applications receive, until nothing is left to do.
func (r *randomStreams) settle() {
	for _, e := range r.ends {
		e.StartReading()
	}
	for range 400 {
		r.carry()
		idle := true
		for _, e := range r.ends {
			for _, d := range r.sending[e] {
				idle = idle && d.isDone()
			}
			if messages, _ := e.end().Waiting(); messages > 0 {
				idle = false
			}
		}
		if idle {
			break
		}
		for _, e := range r.ends {
			r.waiting[e] = append(r.waiting[e], e.recv())
			synctest.Wait()
		}
	}
	for i, e := range r.ends {
		for _, d := range r.sending[e] {
			require.True(r.t, d.isDone(), "%d stands still: %v\n%+v\n%+v", i, r.log, e.end().Account(), e.other.end().Account())
		}
		for _, d := range r.waiting[e] {
			d.cancel()
		}
	}
	r.carry()
}

// TestDivided_RandomSchedules plays random applications over a random schedule of the messages.
func TestDivided_RandomSchedules(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := newRandomStreams(t, seed)
			defer func() {
				for _, e := range r.ends {
					e.Abort(nil)
				}
				r.carry()
				for _, s := range r.sides {
					require.Equal(t, load{}, loadOf(s.room), "seed %d", seed)
					require.Equal(t, 1<<20, s.reserved, "seed %d", seed)
				}
			}()
			for range 300 {
				r.step()
				r.check()
			}
			r.settle()
			r.check()
			for _, e := range r.ends {
				here, there := e.end().Account(), e.other.end().Account()
				if !there.Stopped && !there.EndedThere && !there.Over && !here.Over {
					require.Equal(t, here.Sent, there.Received, "seed %d: %v", seed, r.log)
					require.Equal(t, here.Limit, there.Granted, "seed %d: %v", seed, r.log)
				}
			}
		})
	}
}
