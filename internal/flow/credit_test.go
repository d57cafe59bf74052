package flow_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// turns reports whether a request has got its turn.
func turns(t *flow.Ticket) bool {
	select {
	case <-t.Turn():
		return true
	default:
		return false
	}
}

// newCredit returns a Credit with room, of which some is reserved.
func newCredit(room, reserve int64) *flow.Credit {
	c := new(flow.Credit)
	c.Init(room, reserve)
	return c
}

func TestCredit_ByPriority(t *testing.T) {
	c := newCredit(1, 0)
	require.Nil(t, c.Acquire(0, 1))
	low, first, second := c.Acquire(-1, 1), c.Acquire(0, 1), c.Acquire(0, 1)
	require.Equal(t, 3, c.Len())
	for _, next := range []*flow.Ticket{first, second, low} {
		require.False(t, turns(next))
		c.Release(1)
		require.True(t, turns(next))
		require.False(t, next.Refused())
	}
	require.Zero(t, c.Len())
	require.Zero(t, c.Left())
}

// A request with less need does not overtake one of its priority.
func TestCredit_NoOvertaking(t *testing.T) {
	c := newCredit(4, 0)
	require.Nil(t, c.Acquire(0, 3))
	large := c.Acquire(0, 2)
	small := c.Acquire(0, 1)
	require.NotNil(t, small, "although it would fit")
	require.Nil(t, c.Acquire(1, 1), "but an urgent one does")
	c.Release(1)
	require.False(t, turns(large))
	c.Leave(large)
	require.True(t, turns(small), "which is next, and fits")
}

func TestCredit_Reserve(t *testing.T) {
	c := newCredit(8, 2)
	require.Nil(t, c.Acquire(0, 6))
	waits := c.Acquire(0, 1)
	require.NotNil(t, waits)
	require.Nil(t, c.Acquire(1, 2))
	require.Zero(t, c.Left())
	c.Release(2)
	require.False(t, turns(waits), "the reserve is filled up first")
	c.Release(1)
	require.True(t, turns(waits))
}

func TestCredit_LeaveWithRoom(t *testing.T) {
	c := newCredit(1, 0)
	require.Nil(t, c.Acquire(0, 1))
	first, second := c.Acquire(0, 1), c.Acquire(0, 1)
	c.Release(1)
	require.True(t, turns(first))
	c.Leave(first) // canceled at the same moment
	require.True(t, turns(second))
}

func TestCredit_Close(t *testing.T) {
	c := newCredit(1, 0)
	require.Nil(t, c.Acquire(0, 1))
	waits, left := c.Acquire(0, 1), c.Acquire(0, 1)
	c.Leave(left)
	c.Close()
	late := c.Acquire(0, 1)
	for _, refused := range []*flow.Ticket{waits, late} {
		require.True(t, turns(refused))
		require.True(t, refused.Refused())
		c.Leave(refused)
	}
	require.Zero(t, c.Left(), "they have taken nothing")
	c.Release(1)
	require.Nil(t, c.Acquire(0, 1), "a request that need not wait is not refused")
}

// No room is lost or made, whatever is taken, canceled and released at once.
func TestCredit_Conserved(t *testing.T) {
	const room = 16
	c := newCredit(room, 2)
	var taken atomic.Int64
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 3_000 {
				cost := int64(1 + i%3)
				if w := c.Acquire(priority.Priority(n%3-1), cost); w != nil {
					if i%5 == 0 {
						c.Leave(w)
						continue
					}
					<-w.Turn()
				}
				if sum := taken.Add(cost); sum > room {
					t.Errorf("%d taken of %d", sum, room)
				}
				taken.Add(-cost)
				c.Release(cost)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, room, c.Left())
	require.Zero(t, c.Len())
}

func TestCredit_Unlimited(t *testing.T) {
	c := newCredit(0, 0)
	for range 100_000 {
		require.Nil(t, c.Acquire(priority.Min, 1))
	}
	c.Release(1)
	c.Raise(5)
	require.True(t, c.TryAcquire(100), "an unexpected grant has no effect")
}

// Totals only grow: an older one that arrives late has no effect.
func TestCredit_Raise(t *testing.T) {
	c := newCredit(4, 0)
	require.Nil(t, c.Acquire(0, 4))
	waits := c.Acquire(0, 2)
	c.Raise(5)
	require.False(t, turns(waits))
	c.Raise(4)
	c.Raise(7)
	require.True(t, turns(waits))
	require.EqualValues(t, 1, c.Left())
	require.EqualValues(t, 3, c.Used(), "of the room at the beginning")
	require.False(t, c.TryAcquire(2))
	require.True(t, c.TryAcquire(1))
}

// TestCredit_ConservedWhileRaised has many callers take, wait for, abandon and give back credit
// while the peer grants more, and adds everything up.
func TestCredit_ConservedWhileRaised(t *testing.T) {
	const callers, each, window = 8, 3_000, 64
	o := newCredit(window, window/8)
	var taken, granted atomic.Int64
	granted.Store(window)
	grant := func() { o.Raise(uint64(granted.Add(1))) }
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			p := priority.Priority(c % 2) // every second one is urgent
			for i := range each {
				if w := o.Acquire(p, 1); w != nil {
					if i%5 == 0 {
						o.Leave(w)
						continue
					}
					<-w.Turn()
				}
				if n := taken.Add(1); n > granted.Load() {
					t.Errorf("%d taken of %d", n, granted.Load())
				}
				if i%7 == 0 {
					taken.Add(-1)
					o.Release(1)
				} else {
					grant() // the peer has taken one
				}
			}
		})
	}
	wg.Wait()
	used := o.Used()
	require.EqualValues(t, taken.Load(), granted.Load()-window+used)
	require.Zero(t, o.Len(), "of those that wait")
	require.EqualValues(t, granted.Load()-taken.Load(), o.Left())
}

// TestCredit_ReserveFirst raises a credit whose last eighth is for urgent calls.
func TestCredit_ReserveFirst(t *testing.T) {
	o := newCredit(16, 2)
	for range 14 {
		require.Nil(t, o.Acquire(priority.Normal, 1))
	}
	first, second := o.Acquire(priority.Normal, 1), o.Acquire(priority.Normal, 1)
	require.NotNil(t, first)
	require.Nil(t, o.Acquire(1, 1))
	require.Nil(t, o.Acquire(1, 1))
	urgent := o.Acquire(1, 1)
	require.NotNil(t, urgent, "that was all")
	o.Raise(17)
	require.True(t, turns(urgent), "it goes first, although it came last")
	o.Raise(19)
	require.False(t, turns(first), "the eighth is filled up before")
	o.Raise(20)
	require.True(t, turns(first))
	require.False(t, turns(second))
	o.Release(1)
	require.True(t, turns(second))
}
