package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// The bounds of the first growth, with spare room for exactly 16 windows that grow.
func TestLend_FirstGrowthBounds(t *testing.T) {
	p := flow.Plan{Window: kib, Workers: 1, Callers: 1, Spare: 16 * 64 * kib, Large: kib}
	for _, taken := range []bool{false, true} {
		r, grown := flow.NewRoom(&p), 0
		for range 20 {
			h := new(flow.Hold)
			if r.Lend(h); h.Extra > 0 {
				grown++
			}
			if taken { // the window is no longer fresh
				r.Took(h)
			}
		}
		require.Equal(t, 8, grown, "half of the spare room, and not more; taken: %v", taken)
	}
}

// Windows from which nothing was taken hold at most five eighths of the spare room.
func TestOpen_SpareBound(t *testing.T) {
	p := flow.Plan{Window: 64 * kib, Workers: 1, Spare: 16 * 64 * kib, Large: kib}
	r := flow.NewRoom(&p)
	all, _ := waiters(0, make([]priority.Priority, 11)...)
	for i, c := range all {
		require.Equal(t, i < 10, r.Open(c), "stream %d", i)
	}
}

// In a small room a window starts with an eighth of the spare room, while half of that is free.
func TestGrow_SmallRoom(t *testing.T) {
	p := flow.Plan{Window: kib, Workers: 1, Callers: 1, Spare: 80 * kib, Large: kib}
	r := flow.NewRoom(&p)
	fillSpare(t, r, 50*kib)
	h := &flow.Hold{Base: kib}
	r.Grow(h, 65*kib, 0)
	require.EqualValues(t, 11*kib, h.Bytes())
}

// The windows from which nothing was taken hold at most half of the spare room, and a window of its
// present size always fits.
func TestFit_Bounds(t *testing.T) {
	p := flow.Plan{Window: kib, Workers: 1, Callers: 1, Spare: 64 * kib, Large: kib}
	r := flow.NewRoom(&p)
	h := new(flow.Hold)
	r.Lend(h)
	require.True(t, r.Fit(h, 33*kib))
	require.False(t, r.Fit(h, 33*kib+1))

	p = small(t)
	r = flow.NewRoom(&p)
	h = fillSpare(t, r, 0)
	r.Resize(p.Room / 2)
	require.True(t, r.Fit(h, h.Bytes()), "less room than is held")
	require.False(t, r.Fit(h, h.Bytes()+1))
}

func TestEnd_ReturnsWindow(t *testing.T) {
	p := small(t)
	for _, c := range []struct {
		name string
		hold func(*flow.Room) *flow.Hold
	}{
		{"nothing", func(*flow.Room) *flow.Hold { return new(flow.Hold) }},
		{"of a handler", func(r *flow.Room) *flow.Hold { return begin(t, r) }},
		{"of a handler that has taken something", func(r *flow.Room) *flow.Hold {
			h := begin(t, r)
			r.Took(h)
			return h
		}},
		{"of a stream of this side", func(r *flow.Room) *flow.Hold { return open(t, r) }},
		{"from the spare room, and larger by now", func(r *flow.Room) (h *flow.Hold) {
			for range p.Callers + 1 {
				h = open(t, r)
			}
			require.Equal(t, flow.Spare, h.Source)
			r.Grow(h, 30*kib, 0)
			require.EqualValues(t, 30*kib, h.Bytes())
			return h
		}},
		{"from elsewhere", func(r *flow.Room) *flow.Hold {
			h := new(flow.Hold)
			r.Lend(h)
			return h
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := flow.NewRoom(&p)
			h := c.hold(r)
			others := 0
			if h.Source == flow.Spare {
				others = p.Callers * p.Window
			}
			r.End(h)
			require.Zero(t, *h)
			require.Equal(t, others, r.Load().Windows)
			r.End(h)
			require.Equal(t, others, r.Load().Windows, "the second time means nothing")
		})
	}
}
