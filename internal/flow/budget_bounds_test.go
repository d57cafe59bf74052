package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// Windows from which nothing was taken grow at first to an eighth of the room together. Other new
// windows grow by an eighth of the free elastic room each.
func TestLend_FirstGrowthBounds(t *testing.T) {
	p := flow.Plan{Window: kib, Workers: 1, Callers: 1, Room: 64 * 63 * kib, Elastic: 16 * 63 * kib, Large: kib}
	for _, taken := range []bool{false, true} {
		r, grown := flow.NewBudget(&p), 0
		for range 20 {
			h := new(flow.Window)
			free := p.Elastic - loadOf(r).Windows
			if r.Lend(h); h.Extra > 0 {
				grown++
				require.EqualValues(t, min(63*kib, free/8), h.Extra)
			}
			if taken { // the window is no longer fresh
				r.Took(h)
			}
		}
		if taken {
			require.Equal(t, 20, grown)
		} else {
			require.Equal(t, 8, grown)
			require.Equal(t, 8*63*kib, loadOf(r).Windows)
		}
	}
}

// Streams of this side leave elastic room for seven more, so that windows can still grow.
func TestOpen_SpareBound(t *testing.T) {
	p := flow.Plan{Window: 64 * kib, Workers: 1, Elastic: 16 * 64 * kib, Large: kib}
	r := flow.NewBudget(&p)
	all, _ := waiters(0, make([]priority.Priority, 11)...)
	for i, c := range all {
		require.Equal(t, i < 9, r.Acquire(flow.Made, c), "stream %d", i)
	}
}

// A window of its present size always fits.
func TestFit_Bounds(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	h := fillElastic(t, r, 0)
	r.Resize(p.Room / 2)
	require.True(t, fit(r, h, h.Bytes()), "less room than is held")
	require.False(t, fit(r, h, h.Bytes()+1))
}

func TestEnd_ReturnsWindow(t *testing.T) {
	p := small(t)
	for _, c := range []struct {
		name string
		hold func(*flow.Budget) *flow.Window
	}{
		{"nothing", func(*flow.Budget) *flow.Window { return new(flow.Window) }},
		{"of a handler", func(r *flow.Budget) *flow.Window { return begin(t, r) }},
		{"of a handler that has taken something", func(r *flow.Budget) *flow.Window {
			h := begin(t, r)
			r.Took(h)
			return h
		}},
		{"of a stream of this side", func(r *flow.Budget) *flow.Window { return open(t, r) }},
		{"from the elastic room, and larger by now", func(r *flow.Budget) (h *flow.Window) {
			for range p.Callers + 1 {
				h = open(t, r)
			}
			require.Equal(t, flow.Elastic, h.Class)
			r.Grow(h, 30*kib, 0)
			require.EqualValues(t, 30*kib, h.Bytes())
			return h
		}},
		{"from elsewhere", func(r *flow.Budget) *flow.Window {
			h := new(flow.Window)
			r.Lend(h)
			return h
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := flow.NewBudget(&p)
			h := c.hold(r)
			others := 0
			if h.Class == flow.Elastic {
				others = p.Callers * p.Window
			}
			r.End(h)
			require.Zero(t, *h)
			require.Equal(t, others, loadOf(r).Windows)
			r.End(h)
			require.Equal(t, others, loadOf(r).Windows, "the second time means nothing")
		})
	}
}
