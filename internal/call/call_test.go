package call

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
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
	require.Zero(t, o.Len(), "of those that wait")
	require.EqualValues(t, granted.Load()-taken.Load(), o.Left())
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
	has := func(w *flow.Ticket) bool {
		select {
		case <-w.Turn():
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
	o.Leave(gone)
	o.Close()
	<-first.Turn()
	require.True(t, first.Refused())
	late := o.reserve(priority.Normal, 1)
	<-late.Turn()
	require.True(t, late.Refused())
	o.Leave(late)
	used, room := o.used()
	require.Equal(t, []int{14, 16}, []int{used, room}, "which has used nothing")
	o.grant(20)
	require.Nil(t, o.reserve(priority.Normal, 1))
}

// newOutbound returns an outbound with a soft limit of 50 bytes and a hard one of 100.
func newOutbound(t *testing.T, report func(limits.State)) *sendLimit {
	t.Helper()
	l, err := limits.Limits{Soft: limits.Amount{Bytes: 50}, Hard: limits.Amount{Bytes: 100}}.Check()
	require.NoError(t, err)
	return &sendLimit{Counter: flow.NewCounter(&l, report)}
}

// TestOutbound_DropsUncounted drops a message when a waiting one reaches the soft limit: the
// dropped one is not counted any more.
func TestOutbound_DropsUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o *sendLimit
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

// TestSlots_AgreeWithMap opens and closes pipes as calls do: most of them soon, a few late or
// never, and some ids are skipped.
func TestSlots_AgreeWithMap(t *testing.T) {
	for _, c := range []struct {
		name       string
		most, stay int // pipes open at a time; one of stay stays open
		gap        uint64
	}{
		{"one at a time", 1, 1 << 30, 1},
		{"a few", 7, 1 << 30, 1},
		{"many", 1000, 1 << 30, 1},
		{"some stay", 50, 100, 1},
		{"ids that all have one place", 300, 50, 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(7, 8))
			var s slotRing
			model := map[uint64]endpoint{}
			var open []uint64
			id := uint64(1)
			for i := range 20_000 {
				if len(open) < c.most && (len(open) == 0 || rnd.IntN(2) == 0) {
					id += 2 * (1 + rnd.Uint64N(3)/2) * c.gap
					e := new(Outbound)
					s.put(id, e)
					model[id] = e
					if i%c.stay != 0 {
						open = append(open, id)
					}
				} else {
					at := rnd.IntN(len(open))
					gone := open[at]
					open[at] = open[len(open)-1]
					open = open[:len(open)-1]
					require.Same(t, model[gone], s.remove(gone))
					delete(model, gone)
					require.Nil(t, s.remove(gone), "only once")
					require.Nil(t, s.get(gone))
				}
				require.Equal(t, len(model), s.len())
				require.Nil(t, s.get(id+2))
				if len(open) > 0 {
					some := open[rnd.IntN(len(open))]
					require.Same(t, model[some], s.get(some))
				}
			}
			seen := map[endpoint]bool{}
			s.all(func(e endpoint) { seen[e] = true })
			require.Len(t, seen, len(model))
			for id, e := range model {
				require.Same(t, e, s.get(id))
				require.True(t, seen[e])
			}
		})
	}
}

// TestSlots_SkippedIDs has a peer that skips ids, which must not enlarge the ring.
func TestSlots_SkippedIDs(t *testing.T) {
	var s slotRing
	for i := range uint64(10_000) {
		s.put(i<<20, new(Outbound))
	}
	require.Equal(t, 10_000, s.len())
	require.LessOrEqual(t, len(s.ring), leastSlots, "a ring for ids so far apart would be empty")
}

// TestSlots_ReleaseMemory checks that the ring shrinks after a burst of calls.
func TestSlots_ReleaseMemory(t *testing.T) {
	var s slotRing
	const many = 10_000
	for i := range uint64(many) {
		s.put(2*i, new(Outbound))
	}
	for i := range uint64(many) {
		require.NotNil(t, s.remove(2*i))
	}
	for id := uint64(2 * many); len(s.ring) > spareSlots; id += 2 {
		require.Less(t, id, uint64(3*many), "a few calls suffice")
		s.put(id, new(Outbound))
		s.remove(id)
	}
	require.Zero(t, s.len())
}

// TestPace_PausesAboveRate pauses only events above the rate.
func TestPace_PausesAboveRate(t *testing.T) {
	var p rateLimit
	now := time.Second
	for range givenUpBurst {
		require.Zero(t, p.pause(now), "at once")
	}
	waited := time.Duration(0)
	const more = 20_000
	for range more {
		d := p.pause(now)
		now += d
		waited += d
	}
	require.InDelta(t, more*givenUpEach, waited, float64(givenUpPause), "at the rate")
	now += 1000 * time.Hour // due wraps meanwhile
	for range givenUpBurst {
		require.Zero(t, p.pause(now), "as many at once again, and no more for a longer rest")
	}
	require.InDelta(t, 0, p.pause(now), float64(givenUpPause))
}
