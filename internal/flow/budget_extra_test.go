package flow_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

// granter counts the calls of GrantExtra.
type granter func()

func (g granter) GrantExtra() { g() }

// extraRoom returns a Room with extra credit, and a function that returns how often it was raised
// since the last call.
func extraRoom(t *testing.T) (p flow.Plan, r *flow.Budget, g granter, raised func() int) {
	p, err := flow.NewPlan(limits.Amount{Bytes: 32 * mib}, 4*mib, 1024)
	require.NoError(t, err)
	r = flow.NewBudget(&p)
	n := 0
	return p, r, func() { n++ }, func() int {
		defer func() { n = 0 }()
		return n
	}
}

// take takes extra credit, and returns what holds it.
func take(t *testing.T, r *flow.Budget, g granter, bytes int) *flow.Window {
	h := new(flow.Window)
	ok, granted := r.TakeExtra(h, uint64(bytes), g)
	flow.Grant(granted)
	require.True(t, ok)
	require.EqualValues(t, bytes, h.Bytes())
	return h
}

func TestTakeExtra_NoMoreThanGranted(t *testing.T) {
	p, r, g, _ := extraRoom(t)
	require.Equal(t, p.Elastic/8, p.Extra)
	require.EqualValues(t, p.Extra, r.Extra())
	var h flow.Window
	ok, _ := r.TakeExtra(&h, uint64(p.Extra)+1, g)
	require.False(t, ok)
	require.Zero(t, h)
	require.Equal(t, load{Extra: p.Extra}, loadOf(r))
	ok, _ = r.TakeExtra(&h, 1<<53-1, g)
	require.False(t, ok)
	take(t, r, g, p.Extra)
	require.Equal(t, p.Extra, loadOf(r).Windows)
}

func TestTakeExtra_RaisedWhenHalfIsUsed(t *testing.T) {
	p, r, g, raised := extraRoom(t)
	h := take(t, r, g, p.Extra/4)
	require.Zero(t, raised())
	other := take(t, r, g, p.Extra/2)
	require.Equal(t, 1, raised())
	require.Greater(t, loadOf(r).Extra, p.Extra/2)
	require.LessOrEqual(t, loadOf(r).Extra, p.Extra)
	flow.Grant(r.End(h))
	flow.Grant(r.End(other))
	require.Equal(t, load{Extra: loadOf(r).Extra}, loadOf(r))
}

// The extra credit, and what streams that take nothing hold of it, is an eighth of the room.
func TestTakeExtra_UnreadStreams(t *testing.T) {
	p, r, g, _ := extraRoom(t)
	var holds []*flow.Window
	for loadOf(r).Extra > 8 {
		holds = append(holds, take(t, r, g, (loadOf(r).Extra+7)/8))
		require.LessOrEqual(t, loadOf(r).Windows+loadOf(r).Extra, p.Room/8)
	}
	require.Greater(t, loadOf(r).Windows, p.Room/8-p.Extra)
	stuck := r.Extra()
	flow.Grant(r.Took(holds[0]))
	for _, h := range holds[1:20] {
		flow.Grant(r.Took(h))
	}
	require.Greater(t, r.Extra(), stuck, "the application takes, and there is extra credit again")
}

func TestTakeExtra_NotUnderPressure(t *testing.T) {
	p, err := flow.NewPlan(limits.Amount{Bytes: 32 * mib}, 4*mib, 1024)
	require.NoError(t, err)
	r, all := flow.NewBudget(&p), flow.NewTally(100)
	r.Heed(all)
	g := granter(func() {})
	all.Add(51)
	flow.Grant(r.End(take(t, r, g, p.Extra)))
	require.EqualValues(t, p.Extra, r.Extra())
	all.Add(-10)
	flow.Grant(r.End(begin(t, r)))
	require.Greater(t, r.Extra(), uint64(p.Extra))
}

func TestJoin_LargerOfBoth(t *testing.T) {
	for _, extra := range []int{0, 1, 10_000, 60 * kib, 100_000} {
		p, r, g, _ := extraRoom(t)
		h := new(flow.Window)
		if extra > 0 {
			h = take(t, r, g, extra)
		}
		begun := begin(t, r)
		require.EqualValues(t, 64*kib, begun.Bytes())
		flow.Grant(r.Join(h, *begun))
		require.EqualValues(t, max(64*kib, p.Window+extra), h.Bytes())
		require.Equal(t, flow.Served, h.Class)
		require.EqualValues(t, h.Bytes(), loadOf(r).Windows)
		flow.Grant(r.End(h))
		require.Zero(t, loadOf(r).Windows)
	}
}

// TestTakeExtra_Model opens, begins, takes, ends and resizes at random. The promises fit into the
// room at any time, all of them come back, and there is extra credit in the end.
func TestTakeExtra_Model(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		soft := limits.Amount{Bytes: 64*kib + upTo(rnd, 32*mib)}
		p, err := flow.NewPlan(soft, rnd.IntN(soft.Bytes/8), 1+rnd.IntN(3))
		require.NoError(t, err)
		r := flow.NewBudget(&p)
		total := r.Extra()
		g := granter(func() {
			require.Greater(t, r.Extra(), total)
			total = r.Extra()
		})
		blocks, resized := (p.Workers+p.Callers)*p.Window+p.Elastic, false
		var holds []*flow.Window
		begun := map[*flow.Window]bool{}
		for range 2000 {
			var h *flow.Window
			if len(holds) > 0 {
				h = holds[rnd.IntN(len(holds))]
			}
			switch n := rnd.IntN(100); {
			case n < 40:
				if bytes := loadOf(r).Extra / (1 + rnd.IntN(16)); bytes > 0 {
					holds = append(holds, take(t, r, g, bytes))
				}
			case n < 60 && h != nil && !begun[h]:
				var b flow.Window
				if len(begun) < p.Workers {
					r.Begin(&b)
					flow.Grant(r.Join(h, b))
					begun[h] = true
				}
			case n < 70 && h != nil && begun[h]:
				flow.Grant(r.Took(h))
				flow.Grant(r.Grow(h, 2*h.Bytes(), rnd.Uint64N(h.Bytes()+1)))
			case n < 75 && h != nil:
				flow.Grant(r.Shrink(h, rnd.Uint64N(h.Bytes()+1)))
			case n < 90 && h != nil:
				flow.Grant(r.End(h))
				for i := range holds {
					if holds[i] == h {
						holds = append(holds[:i], holds[i+1:]...)
						break
					}
				}
			case n == 99 && seed%4 == 0:
				resized = true
				flow.Grant(r.Resize(rnd.IntN(2 * p.Room)))
			}
			l := loadOf(r)
			require.GreaterOrEqual(t, l.Extra, 0)
			require.LessOrEqual(t, l.Extra, p.Extra)
			if !resized {
				require.LessOrEqual(t, l.Windows+l.Extra, blocks)
			}
		}
		for _, h := range holds {
			flow.Grant(r.End(h))
		}
		require.Zero(t, loadOf(r).Windows)
		if !resized {
			require.Greater(t, loadOf(r).Extra, p.Extra/4)
		}
	}
}
