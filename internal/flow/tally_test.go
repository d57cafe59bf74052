package flow_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

func TestTally_AddsUp(t *testing.T) {
	all := flow.NewTally(1 << 20)
	var one, other flow.Tally
	one.Within(all)
	other.Within(all)
	var counters []*flow.Counter
	for i := range 4 {
		c := flow.NewCounter(new(limits.Limits), nil)
		c.Tell([]*flow.Tally{&one, &other}[i%2])
		counters = append(counters, c)
	}
	var wg sync.WaitGroup
	for i, c := range counters {
		wg.Go(func() {
			for range 1000 {
				c.Add(100 + 50*(i%2))
			}
		})
	}
	wg.Wait()
	require.InDelta(t, 200_000, one.Held(), 2*flow.Step)
	require.InDelta(t, 300_000, other.Held(), 2*flow.Step)
	require.Equal(t, one.Held()+other.Held(), all.Held())
	for i, c := range counters {
		c.Remove(900, 900*(100+50*(i%2)))
	}
	require.InDelta(t, 50_000, all.Held(), 4*flow.Step)
	for _, c := range counters {
		c.EndTelling()
		c.Add(1 << 20)
		c.Remove(1, 1<<20)
	}
	require.Zero(t, all.Held(), "an ended Part reports nothing any more")
	require.Zero(t, one.Held())
}

func TestTally_PressedAndOver(t *testing.T) {
	all := flow.NewTally(100)
	part := new(flow.Tally)
	part.Within(all)
	for _, c := range []struct {
		held          int
		pressed, over bool
	}{{0, false, false}, {50, false, false}, {51, true, false}, {100, true, false}, {101, true, true}} {
		part.Add(c.held - part.Held())
		require.Equal(t, c.pressed, part.Pressed(), "%d", c.held)
		require.Equal(t, c.pressed, all.Pressed(), "%d", c.held)
		require.Equal(t, c.over, all.Over(), "%d", c.held)
		require.False(t, part.Over(), "it has no bound of its own")
	}
	require.False(t, (*flow.Tally)(nil).Pressed())
	require.Equal(t, 100, all.Most())
}

func TestTally_PressedShrinksWindows(t *testing.T) {
	p := flow.Plan{Window: 4 << 10, Workers: 1, Room: 4 << 20, Elastic: 1 << 20, Large: 1 << 20}
	t1 := flow.NewTally(100)
	r := flow.NewBudget(&p)
	r.Heed(t1)
	var h flow.Window
	r.Begin(&h)
	first := h.Bytes()
	require.Greater(t, first, uint64(p.Window))
	r.Took(&h)
	t1.Add(51)
	r.Grow(&h, 1<<20, first)
	require.Equal(t, first, h.Bytes(), "granted credit stands")
	r.Grow(&h, 1<<20, 0)
	require.EqualValues(t, p.Window, h.Bytes())
	r.End(&h)
	r.Begin(&h)
	require.EqualValues(t, p.Window, h.Bytes())
	t1.Add(-10)
	r.Took(&h)
	r.Grow(&h, 1<<20, 0)
	require.Greater(t, h.Bytes(), uint64(p.Window))
}

// TestTally_ConcurrentTell changes a counter from many goroutines, so that their reports reach the
// Tally out of order.
func TestTally_ConcurrentTell(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(32))
	for range 100 {
		all := flow.NewTally(0)
		c := flow.NewCounter(new(limits.Limits), nil)
		c.Tell(all)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 50 {
					c.Add(1 << 20)
					c.Remove(1, 1<<20)
				}
			})
		}
		wg.Wait()
		require.Zero(t, c.Held())
		require.LessOrEqual(t, all.Held(), flow.Step)
	}
}
