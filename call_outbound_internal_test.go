package asterisque

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// newOutbound returns an outbound with a soft limit of 50 bytes and a hard one of 100.
func newOutbound(t *testing.T, report func(limits.State)) *outbound {
	t.Helper()
	l, err := limits.Limits{Soft: limits.Amount{Bytes: 50}, Hard: limits.Amount{Bytes: 100}}.Check()
	require.NoError(t, err)
	return &outbound{Counter: limits.NewCounter(&l, report)}
}

// TestOutbound_DropsUncounted drops a message when a waiting one reaches the soft limit: the
// dropped one is not counted any more.
func TestOutbound_DropsUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o *outbound
		dropped := 0
		o = newOutbound(t, func(s limits.State) {
			if s == limits.Soft && dropped == 0 {
				dropped++
				o.Remove(1, 10) // as Thin does when it drops messages
			}
		})
		o.Add(10)
		large := 0
		require.NotNil(t, o.reserve(0, 95, func() { large++ }), "it would be beyond the hard limit")
		require.Nil(t, o.reserve(1, 60, nil), "which is more urgent, and has room")
		require.Equal(t, 1, dropped)
		require.Equal(t, 60, o.Held().Bytes)
		require.Zero(t, large)
		o.Remove(1, 60)
		require.Equal(t, 1, large)
		require.Equal(t, limits.Amount{Messages: 1, Bytes: 95}, o.Held())
	})
}

// TestOutbound_ReportExits has a report that panics in admit: later senders are still released.
func TestOutbound_ReportExits(t *testing.T) {
	panics := true
	o := newOutbound(t, func(s limits.State) {
		if s == limits.Soft && panics {
			panic("oops")
		}
	})
	o.Add(10)
	went := 0
	require.NotNil(t, o.reserve(0, 95, func() { went++ }))
	require.Panics(t, func() { o.reserve(1, 60, nil) })
	panics = false
	o.end()
	require.Equal(t, 1, went)
}

// TestOutbound_ReleasedOnce has many senders: each is released once, or abandons its wait.
func TestOutbound_ReleasedOnce(t *testing.T) {
	const senders, each = 8, 500
	o := newOutbound(t, nil)
	var wg sync.WaitGroup
	for n := range senders {
		rnd := rand.New(rand.NewPCG(1, uint64(n)))
		wg.Go(func() {
			for range each {
				held := 1 + rnd.IntN(60)
				turn := make(chan struct{})
				d := o.reserve(priority.Priority(rnd.IntN(3)), held, func() { close(turn) })
				if d != nil && rnd.IntN(4) == 0 && o.abandon(d) {
					continue
				}
				if d != nil {
					<-turn
				}
				runtime.Gosched() // other goroutines find it counted
				o.Remove(1, held)
			}
		})
	}
	wg.Wait()
	require.Zero(t, o.Held())
	require.NotNil(t, o.waiting, "some had to wait")
	require.Zero(t, o.waiting.queue.Len())
	require.False(t, o.queued.Load())
}
