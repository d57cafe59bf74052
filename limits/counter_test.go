package limits_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/limits"
)

// recorder is a report callback that remembers what it was told, and notices if it is called twice at a time.
type recorder struct {
	busy atomic.Bool
	mu   sync.Mutex
	got  []limits.State
	bad  bool
}

func (r *recorder) report(s limits.State) {
	overlap := !r.busy.CompareAndSwap(false, true)
	r.mu.Lock()
	r.got = append(r.got, s)
	r.bad = r.bad || overlap
	r.mu.Unlock()
	r.busy.Store(false)
}

func newCounter(t *testing.T, l limits.Limits) (*limits.Counter, *recorder) {
	l, err := l.Check()
	require.NoError(t, err)
	r := new(recorder)
	return limits.NewCounter(l, r.report), r
}

var tenTwenty = limits.Limits{Soft: limits.Amount{Messages: 10}, Hard: limits.Amount{Messages: 20}}

func TestStateFollowsTheCountWithHysteresis(t *testing.T) {
	c, r := newCounter(t, tenTwenty)
	for range 9 {
		require.Equal(t, limits.Ready, c.Add(100))
	}
	require.Equal(t, limits.Soft, c.Add(100), "the tenth reaches the soft limit")
	c.Remove(4, 400)
	require.Equal(t, limits.Soft, c.State(), "six is above the resume mark of five")
	c.Remove(1, 100)
	require.Equal(t, limits.Ready, c.State(), "five is at the resume mark")
	require.Equal(t, limits.Amount{Messages: 5, Bytes: 5 * (100 + limits.Overhead)}, c.Held())
	require.Equal(t, []limits.State{limits.Soft, limits.Ready}, r.got)
}

func TestBytesCountWithOverheadSoThatTinyMessagesCannotHide(t *testing.T) {
	c, _ := newCounter(t, limits.Limits{Soft: limits.Amount{Bytes: 10 * (limits.Overhead + 1)}})
	for range 9 {
		require.Equal(t, limits.Ready, c.Add(1))
	}
	require.Equal(t, limits.Soft, c.Add(1))
}

func TestHardIsBeyondTheLimitAndFinal(t *testing.T) {
	c, r := newCounter(t, tenTwenty)
	for range 20 {
		require.NotEqual(t, limits.Hard, c.Add(0), "exactly at the hard limit is allowed")
	}
	require.Equal(t, limits.Hard, c.Add(0), "one beyond is not")
	c.Remove(21, 0)
	require.Equal(t, limits.Hard, c.State())
	require.Equal(t, []limits.State{limits.Soft, limits.Hard}, r.got)
}

func TestReserveWaitsFromTheSoftLimitOnToTheResumeMark(t *testing.T) {
	c, _ := newCounter(t, tenTwenty)
	for range 10 {
		require.Nil(t, c.Reserve(0))
	}
	room := c.Reserve(0)
	require.NotNil(t, room, "the soft limit is reached")
	require.Equal(t, 10, c.Held().Messages, "nothing was counted")
	c.Remove(4, 0)
	select {
	case <-room:
		t.Fatal("six is above the resume mark")
	default:
	}
	c.Remove(1, 0)
	<-room
	require.Nil(t, c.Room())
	require.Nil(t, c.Reserve(0))
}

func TestFullIsClosedWhenTheSoftLimitIsReached(t *testing.T) {
	c, _ := newCounter(t, tenTwenty)
	full := c.Full()
	for range 9 {
		c.Add(0)
	}
	select {
	case <-full:
		t.Fatal("nine are below the soft limit")
	default:
	}
	c.Add(0)
	<-full
	require.Nil(t, c.Full())
}

func TestCongestedShowsOnlyBelowSoft(t *testing.T) {
	c, r := newCounter(t, tenTwenty)
	c.SetCongested(true)
	for range 10 {
		c.Add(0)
	}
	c.Remove(5, 0)
	c.SetCongested(false)
	c.SetCongested(false)
	require.Equal(t, []limits.State{limits.Congested, limits.Soft, limits.Congested, limits.Ready}, r.got)
}

func TestLimitsChangeOnTheLivingCounter(t *testing.T) {
	c, r := newCounter(t, limits.Limits{})
	for range 12 {
		c.Add(0)
	}
	l, err := tenTwenty.Check()
	require.NoError(t, err)
	require.Equal(t, limits.Soft, c.SetLimits(l), "twelve are above the new soft limit")
	require.Equal(t, l, c.Limits())
	room := c.Room()
	require.Equal(t, limits.Ready, c.SetLimits(limits.Limits{}))
	<-room
	require.Equal(t, []limits.State{limits.Soft, limits.Ready}, r.got)
}

// TestManyGoroutinesAgreeWithTheModel drives a counter from many goroutines. Whatever their order, nothing may be lost, reports must form a chain without repeats,
// reservations must keep to the soft limit, and in the end the last report must be the state.
func TestManyGoroutinesAgreeWithTheModel(t *testing.T) {
	const goroutines, steps = 8, 5000
	c, r := newCounter(t, limits.Limits{Soft: limits.Amount{Messages: 40, Bytes: 40 * 100}})
	var held, bytes atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(g)))
			var mine []int
			for range steps {
				switch size := rnd.IntN(60); {
				case len(mine) > 0 && rnd.IntN(2) == 0:
					c.Remove(1, mine[0])
					held.Add(-1)
					bytes.Add(int64(-mine[0] - limits.Overhead))
					mine = mine[1:]
				case rnd.IntN(4) == 0:
					c.SetCongested(rnd.IntN(2) == 0)
				case c.Reserve(size) == nil:
					if n := c.Held().Messages; n > 40 {
						t.Errorf("%d messages are held, and Reserve must not go beyond 40", n)
					}
					mine = append(mine, size)
					held.Add(1)
					bytes.Add(int64(size + limits.Overhead))
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, limits.Amount{Messages: int(held.Load()), Bytes: int(bytes.Load())}, c.Held())
	require.False(t, r.bad, "reports must not overlap")
	require.Equal(t, c.State(), r.got[len(r.got)-1])
	last := limits.Ready
	for i, s := range r.got {
		require.NotEqual(t, last, s, "report %d repeats the one before", i)
		last = s
	}
}

func BenchmarkCounter(b *testing.B) {
	l, _ := limits.Limits{Soft: limits.Amount{Messages: 1 << 20, Bytes: 1 << 29}, Hard: limits.Amount{Messages: 1 << 21, Bytes: 1 << 30}}.Check()
	c := limits.NewCounter(l, nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Reserve(64)
			c.Remove(1, 64)
		}
	})
}
