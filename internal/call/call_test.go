package call

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
