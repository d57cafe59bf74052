package piping_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/pipe"
)

// stream is a stream from here to there for one test: there is the receiver, and its handler has
// begun.
type stream struct {
	t           *testing.T
	here, there *end
}

// plan is the smallest plan for a stream: a window of early bytes on either side, and room for a
// large Block.
var plan = flow.Plan{Window: early, Workers: 1, Callers: 1, Large: 100_000 + overhead}

// newStream returns a stream with sides that divide their room by plan. It is called in a bubble.
func newStream(t *testing.T, plan flow.Plan) *stream {
	a, _ := newSides(t, plan, 512<<10)
	s := &stream{t: t}
	s.here, s.there = a.open(0)
	require.True(t, s.there.begin())
	s.run()
	return s
}

// streams returns n streams between the same sides, which share so much room for large Blocks.
func streams(t *testing.T, n, room int) (all []*stream) {
	shared := plan
	shared.Workers, shared.Callers, shared.Large = n, n, room
	all = append(all, newStream(t, shared))
	for range n - 1 {
		s := &stream{t: t}
		s.here, s.there = all[0].here.s.open(0)
		require.True(t, s.there.begin())
		s.run()
		all = append(all, s)
	}
	return all
}

// claim has a large Block wait for the room of another one. free releases that room.
func (s *stream) claim() (b *doing, free func()) {
	others := flow.Waiter{Bytes: plan.Large, Granted: func(bool) {}}
	require.True(s.t, s.there.s.room.Acquire(flow.Large, &others))
	b = s.here.send(large)
	s.run()
	s.there.recv()
	s.run()
	require.Equal(s.t, 1, s.load().Asking)
	return b, func() { flow.Grant(s.there.s.room.Release(flow.Large, others.Bytes)) }
}

// run sends and delivers all messages.
func (s *stream) run() {
	for more := true; more; {
		synctest.Wait()
		more = false
		for _, e := range []*end{s.here, s.there} {
			for e.s.tell() || e.depart() || e.s.deliver() {
				synctest.Wait()
				more = true
			}
		}
	}
}

// load returns the load of the receiver's room.
func (s *stream) load() load { return loadOf(s.there.s.room) }

// finish ends the call, and requires that no room is held any more.
func (s *stream) finish() {
	s.t.Helper()
	s.here.Abort(nil)
	s.run()
	s.there.Abort(nil)
	s.run()
	for _, e := range []*end{s.here, s.there} {
		require.Equal(s.t, load{}, loadOf(e.s.room))
		require.Zero(s.t, e.s.messages)
		require.Zero(s.t, e.s.bytes)
		require.Zero(s.t, e.s.overrun)
		require.Zero(s.t, e.s.terms.Left())
	}
}

// doing is a call that waits.
type doing struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	block  pipe.Block
}

// do calls f in the background.
func do(f func(ctx context.Context) (pipe.Block, error)) *doing {
	ctx, cancel := context.WithCancel(background)
	d := &doing{cancel: cancel, done: make(chan struct{})}
	go func() {
		d.block, d.err = f(ctx)
		cancel()
		close(d.done)
	}()
	return d
}

// isDone reports whether the call has returned.
func (d *doing) isDone() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// load is the granted part of a Budget.
type load struct{ Windows, Large, Opening, Asking int }

func loadOf(b *flow.Budget) load {
	l := b.Load()
	return load{l.Windows().Granted, l[flow.Large].Granted, l[flow.Made].Waiting, l[flow.Large].Waiting}
}
