package asterisque

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/priority"
)

// TestOpenCredit_Conserved has many callers take, wait for, abandon and give back credit while the
// peer grants more, and adds everything up.
func TestOpenCredit_Conserved(t *testing.T) {
	const callers, each, window = 8, 3_000, 64
	var o openCredit
	o.init(window, 1)
	var taken, granted atomic.Int64
	granted.Store(window)
	grant := func() { o.grant(uint64(granted.Add(1))) }
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			p := priority.Priority(c % 2) // every second one is urgent
			for i := range each {
				if w := o.reserve(p, 1); w != nil {
					if i%5 == 0 {
						o.abandon(w)
						continue
					}
					<-w.turn
				}
				if n := taken.Add(1); n > granted.Load() {
					t.Errorf("%d taken of %d", n, granted.Load())
				}
				if i%7 == 0 {
					taken.Add(-1)
					o.giveBack(1)
				} else {
					grant() // the peer has taken one
				}
			}
		})
	}
	wg.Wait()
	used, _ := o.used()
	require.EqualValues(t, taken.Load(), granted.Load()-window+int64(used))
	require.False(t, o.queued.Load(), "nobody waits")
	require.EqualValues(t, granted.Load()-taken.Load()-window/8, o.left.Load())
}

// TestOpenCredit_LastEighth checks that the last eighth of the credit is for urgent calls.
func TestOpenCredit_LastEighth(t *testing.T) {
	var o openCredit
	o.init(16, 1)
	for range 14 {
		require.Nil(t, o.reserve(priority.Normal, 1))
	}
	first, second := o.reserve(priority.Normal, 1), o.reserve(priority.Normal, 1)
	require.NotNil(t, first)
	require.Nil(t, o.reserve(1, 1))
	require.Nil(t, o.reserve(1, 1))
	urgent := o.reserve(1, 1)
	require.NotNil(t, urgent, "that was all")
	has := func(w *openWaiter) bool {
		select {
		case <-w.turn:
			return true
		default:
			return false
		}
	}
	o.grant(17)
	require.True(t, has(urgent), "it goes first, although it came last")
	o.grant(19)
	require.False(t, has(first), "the eighth is filled up before")
	o.grant(20)
	require.True(t, has(first))
	require.False(t, has(second))
	o.giveBack(1)
	require.True(t, has(second))
}

// TestOpenCredit_Unlimited has a peer without windows: credit has no limit.
func TestOpenCredit_Unlimited(t *testing.T) {
	var o openCredit
	o.init(0, 1)
	for range 100_000 {
		require.Nil(t, o.reserve(priority.Min, 1))
	}
	o.giveBack(1)
	o.grant(5) // an unexpected Credit has no effect
	require.Nil(t, o.reserve(priority.Min, 1))
}

// TestOpenCredit_Drain drains while calls wait: these and all later calls are rejected.
func TestOpenCredit_Drain(t *testing.T) {
	var o openCredit
	o.init(16, 1)
	for range 14 {
		require.Nil(t, o.reserve(priority.Normal, 1))
	}
	first, gone := o.reserve(priority.Normal, 1), o.reserve(priority.Normal, 1)
	o.abandon(gone)
	o.drain()
	<-first.turn
	require.True(t, first.refused)
	late := o.reserve(priority.Normal, 1)
	<-late.turn
	require.True(t, late.refused)
	o.abandon(late)
	used, room := o.used()
	require.Equal(t, []int{14, 16}, []int{used, room}, "which has used nothing")
	o.grant(20)
	require.Nil(t, o.reserve(priority.Normal, 1))
}
