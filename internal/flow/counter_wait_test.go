package flow_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// message returns a message that may have to wait to be counted; counted may be nil.
func message(p priority.Priority, held int, counted func()) *flow.Waiter {
	return &flow.Waiter{Priority: p, Bytes: held, Granted: func(bool) {
		if counted != nil {
			counted()
		}
	}}
}

// newOutbound returns a Counter with a soft limit of 50 bytes and a hard one of 100.
func newOutbound(t *testing.T, report func(limits.State)) *flow.Counter {
	t.Helper()
	l, err := limits.Limits{Soft: limits.Amount{Bytes: 50}, Hard: limits.Amount{Bytes: 100}}.Check()
	require.NoError(t, err)
	return flow.NewCounter(&l, report)
}

// TestCounter_DropsUncounted drops a message when a waiting one reaches the soft limit: the
// dropped one is not counted any more.
func TestCounter_DropsUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o *flow.Counter
		dropped := 0
		o = newOutbound(t, func(s limits.State) {
			if s == limits.Soft && dropped == 0 {
				dropped++
				o.Remove(1, 10) // as Thin does when it drops messages
			}
		})
		o.Add(10)
		large := 0
		require.False(t, o.Acquire(message(0, 95, func() { large++ })), "it would be beyond the hard limit")
		require.True(t, o.Acquire(message(1, 60, nil)), "which is more urgent, and has room")
		require.Equal(t, 1, dropped)
		require.Equal(t, 60, o.Held().Bytes)
		require.Zero(t, large)
		o.Remove(1, 60)
		require.Equal(t, 1, large)
		require.Equal(t, limits.Amount{Messages: 1, Bytes: 95}, o.Held())
	})
}

// TestCounter_ReportExits has a report that panics in Acquire: later senders are still released.
func TestCounter_ReportExits(t *testing.T) {
	panics := true
	o := newOutbound(t, func(s limits.State) {
		if s == limits.Soft && panics {
			panic("oops")
		}
	})
	o.Add(10)
	went := 0
	require.False(t, o.Acquire(message(0, 95, func() { went++ })))
	require.Panics(t, func() { o.Acquire(message(1, 60, nil)) })
	panics = false
	o.End()
	require.Equal(t, 1, went)
}

// TestCounter_GrantsBesideExit has a report that ends its goroutine after a message was counted:
// the message is granted all the same.
func TestCounter_GrantsBesideExit(t *testing.T) {
	o := newOutbound(t, func(s limits.State) {
		if s == limits.Soft {
			runtime.Goexit()
		}
	})
	exits := func(f func()) {
		over := make(chan struct{})
		go func() {
			defer close(over)
			f()
		}()
		<-over
	}
	exits(func() { o.Add(60) })
	went := 0
	require.False(t, o.Acquire(message(0, 60, func() { went++ })))
	exits(func() { o.Remove(1, 60) })
	require.Equal(t, limits.Amount{Messages: 1, Bytes: 60}, o.Held())
	require.Equal(t, 1, went)
}

// TestCounter_ReleasedOnce has many senders: each is released once, or abandons its wait.
func TestCounter_ReleasedOnce(t *testing.T) {
	const senders, each = 8, 500
	o := newOutbound(t, nil)
	var wg sync.WaitGroup
	var waits atomic.Int64
	for n := range senders {
		rnd := rand.New(rand.NewPCG(1, uint64(n)))
		wg.Go(func() {
			for range each {
				held := 1 + rnd.IntN(60)
				turn := make(chan struct{})
				w := message(priority.Priority(rnd.IntN(3)), held, func() { close(turn) })
				if !o.Acquire(w) {
					waits.Add(1)
					if rnd.IntN(4) == 0 {
						o.Leave(w)
						continue
					}
					<-turn
				}
				runtime.Gosched() // other goroutines find it counted
				o.Remove(1, held)
			}
		})
	}
	wg.Wait()
	require.Zero(t, o.Held())
	require.Positive(t, waits.Load(), "some had to wait")
	require.False(t, o.Queued())
}

// A share of the bytes is for messages of lower priorities, in turn.
func TestCounter_ShareOfLowerPriorities(t *testing.T) {
	for _, share := range []float64{0, 0.25} {
		o := newOutbound(t, nil)
		o.Share(share)
		o.Add(50)
		got := make(map[priority.Priority]int)
		var wait func(p priority.Priority)
		wait = func(p priority.Priority) {
			o.Acquire(message(p, 10, func() { got[p]++; wait(p) })) // another one waits behind it
		}
		for _, p := range []priority.Priority{0, -1, -2} {
			for range 20 {
				wait(p)
			}
		}
		for range 1000 {
			o.Remove(o.Held().Messages, o.Held().Bytes)
		}
		sum := got[0] + got[-1] + got[-2]
		require.Greater(t, sum, 1000)
		require.InDelta(t, (1-share)*float64(sum), got[0], 0.02*float64(sum))
		require.InDelta(t, got[-1], got[-2], 0.02*float64(sum))
	}
}
