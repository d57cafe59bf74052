package asterisque

import (
	"math/rand/v2"
	"testing"

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
			var s slots
			model := map[uint64]endpoint{}
			var open []uint64
			id := uint64(1)
			for i := range 20_000 {
				if len(open) < c.most && (len(open) == 0 || rnd.IntN(2) == 0) {
					id += 2 * (1 + rnd.Uint64N(3)/2) * c.gap
					e := new(madeCall)
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
	var s slots
	for i := range uint64(10_000) {
		s.put(i<<20, new(madeCall))
	}
	require.Equal(t, 10_000, s.len())
	require.LessOrEqual(t, len(s.ring), leastSlots, "a ring for ids so far apart would be empty")
}

// TestSlots_ReleaseMemory checks that the ring shrinks after a burst of calls.
func TestSlots_ReleaseMemory(t *testing.T) {
	var s slots
	const many = 10_000
	for i := range uint64(many) {
		s.put(2*i, new(madeCall))
	}
	for i := range uint64(many) {
		require.NotNil(t, s.remove(2*i))
	}
	for id := uint64(2 * many); len(s.ring) > spareSlots; id += 2 {
		require.Less(t, id, uint64(3*many), "a few calls suffice")
		s.put(id, new(madeCall))
		s.remove(id)
	}
	require.Zero(t, s.len())
}
