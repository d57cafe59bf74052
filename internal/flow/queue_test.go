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

// newQueue returns a Queue with room, of which some is reserved.
func newQueue(room, reserve int64) *flow.Queue {
	q := new(flow.Queue)
	q.Init(room, reserve)
	return q
}

func TestQueue_ByPriority(t *testing.T) {
	q := newQueue(1, 0)
	require.Nil(t, q.Acquire(0, 1))
	low, first, second := q.Acquire(-1, 1), q.Acquire(0, 1), q.Acquire(0, 1)
	require.Equal(t, 3, q.Len())
	for _, next := range []*flow.Ticket{first, second, low} {
		require.False(t, turns(next))
		q.Release(1)
		require.True(t, turns(next))
		require.False(t, next.Refused())
	}
	require.Zero(t, q.Len())
	require.Zero(t, q.Left())
}

// A request with less need does not overtake one of its priority.
func TestQueue_NoOvertaking(t *testing.T) {
	q := newQueue(4, 0)
	require.Nil(t, q.Acquire(0, 3))
	large := q.Acquire(0, 2)
	small := q.Acquire(0, 1)
	require.NotNil(t, small, "although it would fit")
	require.Nil(t, q.Acquire(1, 1), "but an urgent one does")
	q.Release(1)
	require.False(t, turns(large))
	q.Leave(large)
	require.True(t, turns(small), "which is next, and fits")
}

func TestQueue_Reserve(t *testing.T) {
	q := newQueue(8, 2)
	require.Nil(t, q.Acquire(0, 6))
	waits := q.Acquire(0, 1)
	require.NotNil(t, waits)
	require.Nil(t, q.Acquire(1, 2))
	require.Zero(t, q.Left())
	q.Release(2)
	require.False(t, turns(waits), "the reserve is filled up first")
	q.Release(1)
	require.True(t, turns(waits))
}

func TestQueue_LeaveWithRoom(t *testing.T) {
	q := newQueue(1, 0)
	require.Nil(t, q.Acquire(0, 1))
	first, second := q.Acquire(0, 1), q.Acquire(0, 1)
	q.Release(1)
	require.True(t, turns(first))
	q.Leave(first) // canceled at the same moment
	require.True(t, turns(second))
}

func TestQueue_Close(t *testing.T) {
	q := newQueue(1, 0)
	require.Nil(t, q.Acquire(0, 1))
	waits, left := q.Acquire(0, 1), q.Acquire(0, 1)
	q.Leave(left)
	q.Close()
	late := q.Acquire(0, 1)
	for _, refused := range []*flow.Ticket{waits, late} {
		require.True(t, turns(refused))
		require.True(t, refused.Refused())
		q.Leave(refused)
	}
	require.Zero(t, q.Left(), "they have taken nothing")
	q.Release(1)
	require.Nil(t, q.Acquire(0, 1), "a request that need not wait is not refused")
}

// No room is lost or made, whatever is taken, canceled and released at once.
func TestQueue_Conserved(t *testing.T) {
	const room = 16
	q := newQueue(room, 2)
	var taken atomic.Int64
	var all sync.WaitGroup
	for c := range 8 {
		all.Go(func() {
			for i := range 3_000 {
				n := int64(1 + i%3)
				if w := q.Acquire(priority.Priority(c%3-1), n); w != nil {
					if i%5 == 0 {
						q.Leave(w)
						continue
					}
					<-w.Turn()
				}
				if sum := taken.Add(n); sum > room {
					t.Errorf("%d taken of %d", sum, room)
				}
				taken.Add(-n)
				q.Release(n)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, room, q.Left())
	require.Zero(t, q.Len())
}
