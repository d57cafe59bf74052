package flow_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

// recorder is a report callback that records the reported states and detects concurrent calls.
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

func newCounter(t *testing.T, l limits.Limits) (*flow.Counter, *recorder) {
	l, err := l.Check()
	require.NoError(t, err)
	r := new(recorder)
	return flow.NewCounter(&l, r.report), r
}

var tenTwenty = limits.Limits{Soft: limits.Amount{Messages: 10}, Hard: limits.Amount{Messages: 20}}

func TestCounter_Hysteresis(t *testing.T) {
	c, r := newCounter(t, tenTwenty)
	for range 9 {
		require.Equal(t, limits.Ready, c.Add(100))
	}
	require.Equal(t, limits.Soft, c.Add(100), "the tenth reaches the soft limit")
	c.Remove(4, 400)
	require.Equal(t, limits.Soft, c.State(), "six is above the low mark of five")
	c.Remove(1, 100)
	require.Equal(t, limits.Ready, c.State(), "five is at the low mark")
	require.Equal(t, limits.Amount{Messages: 5, Bytes: 500}, c.Held())
	require.Equal(t, limits.Amount{Messages: 10, Bytes: 1000}, c.Peak())
	require.EqualValues(t, 2, c.Relieved(), "the tenth, and the removals above the low mark")
	require.Equal(t, []limits.State{limits.Soft, limits.Ready}, r.got)
}

func TestCounter_BytesAndMessages(t *testing.T) {
	c, r := newCounter(t, limits.Limits{Soft: limits.Amount{Messages: 100, Bytes: 1000}, Hard: limits.Amount{Bytes: 2000}})
	require.Equal(t, limits.Ready, c.Add(999))
	require.Equal(t, limits.Soft, c.Add(1))
	require.Equal(t, limits.Soft, c.Add(1000), "exactly at the hard limit is allowed")
	c.Remove(1, 1499)
	require.Equal(t, limits.Soft, c.State(), "501 are above the low mark")
	c.Remove(1, 1)
	require.Equal(t, limits.Ready, c.State())
	require.Equal(t, limits.Hard, c.Add(1501))
	require.Equal(t, []limits.State{limits.Soft, limits.Ready, limits.Hard}, r.got)
}

func TestCounter_AddsNoOverhead(t *testing.T) {
	c, _ := newCounter(t, limits.Limits{Soft: limits.Amount{Bytes: 10}})
	for range 1000 {
		require.Equal(t, limits.Ready, c.Add(0), "only bytes are limited, and there are none")
	}
	require.Equal(t, limits.Amount{Messages: 1000}, c.Held())
	require.True(t, c.TryAcquire(9))
	require.Equal(t, limits.Soft, c.Add(1))
	c.Remove(1002, 10)
	require.Zero(t, c.Held())
}

func TestCounter_HardIsFinal(t *testing.T) {
	c, r := newCounter(t, tenTwenty)
	for range 20 {
		require.NotEqual(t, limits.Hard, c.Add(0), "exactly at the hard limit is allowed")
	}
	require.Equal(t, limits.Hard, c.Add(0), "one beyond is not")
	c.Remove(21, 0)
	require.Equal(t, limits.Hard, c.State())
	require.Equal(t, []limits.State{limits.Soft, limits.Hard}, r.got)
}

func TestReserve_RefusesUntilLow(t *testing.T) {
	c, _ := newCounter(t, tenTwenty)
	for range 10 {
		require.True(t, c.TryAcquire(0))
	}
	require.False(t, c.TryAcquire(0), "the soft limit is reached")
	require.Equal(t, 10, c.Held().Messages, "nothing was counted")
	room := c.Room()
	require.NotNil(t, room)
	c.Remove(4, 0)
	select {
	case <-room:
		t.Fatal("six is above the low mark")
	default:
	}
	require.False(t, c.TryAcquire(0))
	c.Remove(1, 0)
	<-room
	require.Nil(t, c.Room())
	require.True(t, c.TryAcquire(0))
}

func TestReserve_AtTheLimits(t *testing.T) {
	l := limits.Limits{Soft: limits.Amount{Bytes: 1000}, Hard: limits.Amount{Messages: 3, Bytes: 2000}}
	for _, c := range []struct {
		name  string
		held  []int
		bytes int
		want  bool
	}{
		{"below the soft limit", []int{500}, 499, true},
		{"past the soft limit, from nothing", nil, 1500, true},
		{"past the soft limit, from below", []int{999}, 1001, true},
		{"to the hard limit", nil, 2000, true},
		{"beyond the hard limit", nil, 2001, false},
		{"beyond the hard limit, with the held bytes", []int{999}, 1002, false},
		{"at the soft limit", []int{1000}, 0, false},
		{"above the soft limit", []int{1500}, 1, false},
		{"to the number of the hard limit", []int{1, 1}, 1, true},
		{"beyond the number of the hard limit", []int{1, 1, 1}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			counter, _ := newCounter(t, l)
			for _, n := range c.held {
				require.True(t, counter.TryAcquire(n))
			}
			before := counter.Held()
			require.Equal(t, c.want, counter.TryAcquire(c.bytes))
			if !c.want {
				require.Equal(t, before, counter.Held(), "nothing was counted")
			}
			require.NotEqual(t, limits.Hard, counter.State())
		})
	}
}

func TestNever_IsTheHardLimit(t *testing.T) {
	c, _ := newCounter(t, limits.Limits{Soft: limits.Amount{Bytes: 1000}, Hard: limits.Amount{Bytes: 2000}})
	c.Add(1500)
	require.False(t, c.Never(2000), "it fits when the rest has gone")
	require.True(t, c.Never(2001))
	c, _ = newCounter(t, tenTwenty)
	require.False(t, c.Never(limits.MaxBytes), "there is no limit of bytes")
}

func TestGrow_BothWays(t *testing.T) {
	c, r := newCounter(t, limits.Limits{Soft: limits.Amount{Bytes: 1000}, Hard: limits.Amount{Bytes: 2000}})
	c.Add(100)
	c.Grow(900)
	require.Equal(t, limits.Soft, c.State())
	require.Equal(t, limits.Amount{Messages: 1, Bytes: 1000}, c.Held())
	c.Grow(-500)
	require.Equal(t, limits.Ready, c.State(), "at the low mark")
	require.Equal(t, limits.Amount{Messages: 1, Bytes: 500}, c.Held())
	c.Remove(1, 500)
	require.Zero(t, c.Held())
	c.Grow(2001)
	require.Equal(t, []limits.State{limits.Soft, limits.Ready, limits.Hard}, r.got)
}

func TestFull_ClosedAtSoft(t *testing.T) {
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

func TestCongested_OnlyBelowSoft(t *testing.T) {
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

func TestSetLimits_OnLiveCounter(t *testing.T) {
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

// TestCounter_ConcurrentModel changes a counter from many goroutines. In any order, no change is
// lost, the reports form a chain without repeats, reservations keep to the soft limit, and the last
// report equals the final state.
func TestCounter_ConcurrentModel(t *testing.T) {
	const goroutines, steps = 8, 5000
	c, r := newCounter(t, limits.Limits{Soft: limits.Amount{Messages: 40, Bytes: 40 * 100}})
	var held, bytes atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(g)))
			var mine []int
			for range steps {
				switch size := 1 + rnd.IntN(150); {
				case len(mine) > 0 && rnd.IntN(2) == 0:
					c.Remove(1, mine[0])
					held.Add(-1)
					bytes.Add(int64(-mine[0]))
					mine = mine[1:]
				case rnd.IntN(4) == 0:
					c.SetCongested(rnd.IntN(2) == 0)
				case len(mine) > 0 && rnd.IntN(4) == 0:
					c.Grow(size - mine[0])
					bytes.Add(int64(size - mine[0]))
					mine[0] = size
				case c.TryAcquire(size):
					if n := c.Held().Messages; n > 40 {
						t.Errorf("%d messages are held, and Reserve must not go beyond 40", n)
					}
					mine = append(mine, size)
					held.Add(1)
					bytes.Add(int64(size))
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
	c := flow.NewCounter(&l, nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if c.TryAcquire(64) {
				c.Remove(1, 64)
			}
		}
	})
}
