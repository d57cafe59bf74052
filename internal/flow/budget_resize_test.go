package flow_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

func TestResize_KeepsPromises(t *testing.T) {
	for _, c := range []struct {
		name             string
		soft             limits.Amount
		largest, workers int
		bytes            int
		room             int
	}{
		{"to the same", limits.Amount{Bytes: 32 * mib}, 64 * kib, 1024, 32 * mib, 32 * mib},
		{"larger", limits.Amount{Bytes: 32 * mib}, 64 * kib, 1024, 64 * mib, 64 * mib},
		{"smaller", limits.Amount{Bytes: 32 * mib}, 64 * kib, 1024, 24 * mib, 24 * mib},
		{"none", limits.Amount{Bytes: 64 * mib}, 64 * kib, 1024, 0, 32 * mib},
		{"not below the minimums and the extra credit", limits.Amount{Bytes: 32 * mib}, 64 * kib, 1024, mib,
			4*mib + 4*mib + mib + 64*kib + 512 + (1024+64)*4096},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlan(t, c.soft, c.largest, c.workers)
			r := flow.NewBudget(&p)
			require.Empty(t, r.Resize(c.bytes))
			got := r.Plan()
			require.Equal(t, c.room, got.Room)
			require.Equal(t, got.Room, got.Opens+got.Nested+got.NestedOwn+got.Large+(got.Workers+got.Callers)*got.Window+got.Elastic)
			require.Zero(t, loadOf(r), "nothing is promised")
			rest := got
			rest.Room, rest.Elastic = p.Room, p.Elastic
			require.Equal(t, p, rest, "all else stands")
		})
	}
}

// TestResize_ToSameSize covers plans of all kinds.
func TestResize_ToSameSize(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 5))
	for range 50_000 {
		soft := limits.Amount{Messages: upTo(rnd, 1<<20), Bytes: 1 + upTo(rnd, 1<<30)}
		p, err := flow.NewPlan(soft, rnd.IntN(max(soft.Bytes, flow.LeastRoom)/8+1), 1+upTo(rnd, 2000))
		if err != nil {
			continue
		}
		r := flow.NewBudget(&p)
		r.Resize(p.Room)
		if got := r.Plan(); got != p {
			t.Fatalf("%+v became %+v", p, got)
		}
		r.Resize(1)
		r.Resize(p.Room)
		if got := r.Plan(); got != p {
			t.Fatalf("%+v became %+v after smaller ones", p, got)
		}
	}
}

// After limits became smaller, credit stands, and the minimum of each class is still there.
func TestResize_SmallerKeepsMinimums(t *testing.T) {
	p := newPlan(t, limits.Amount{Bytes: 32 * mib}, 64*kib, 64)
	r := flow.NewBudget(&p)
	big := fillElastic(t, r, 0)
	before := loadOf(r).Windows
	require.Empty(t, r.Resize(3*mib))
	require.Equal(t, before, loadOf(r).Windows)
	for range p.Workers {
		require.EqualValues(t, p.Window, begin(t, r).Bytes(), "there is no elastic room")
	}
	for range p.Callers {
		open(t, r)
	}
	all, opened := waiters(0, 0)
	require.False(t, r.Acquire(flow.Made, all[0]))
	large, _ := waiters(p.Large, 0)
	require.True(t, r.Acquire(flow.Large, large[0]))
	require.Equal(t, flow.Large, large[0].Source())
	var h flow.Window
	r.Lend(&h)
	require.EqualValues(t, p.Window, h.Bytes())
	require.True(t, r.Nest(&h))

	flow.Grant(r.Shrink(big, 4*mib))
	require.Empty(t, opened(), "more is promised than there is room for")
	flow.Grant(r.Resize(32 * mib))
	require.Equal(t, []int{0}, opened())
}

func TestNest_HasItsOwnShare(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	fillElastic(t, r, 0)
	var holds []*flow.Window
	for range p.NestedOwn / p.Window {
		h := new(flow.Window)
		require.True(t, r.Nest(h))
		require.EqualValues(t, p.Window, h.Bytes())
		holds = append(holds, h)
	}
	var more flow.Window
	require.False(t, r.Nest(&more), "it never waits")
	require.Empty(t, r.End(&more))
	require.Empty(t, r.End(holds[0]))
	require.True(t, r.Nest(&more))
}

func TestResize_LargerGrants(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	fillElastic(t, r, 0)
	for range p.Callers {
		open(t, r)
	}
	all, granted := waiters(0, 0)
	require.False(t, r.Acquire(flow.Made, all[0]))
	flow.Grant(r.Resize(p.Room * 2))
	require.Equal(t, []int{0}, granted())
}

// TestResize_WaitsEnd makes the room as small as possible. Without other grants, one of each kind
// still finds room.
func TestResize_WaitsEnd(t *testing.T) {
	for _, p := range []flow.Plan{
		newPlan(t, limits.Amount{Bytes: 32 * mib}, kib, 1),
		newPlan(t, limits.Amount{Bytes: 32 * mib}, kib, 1024),
		newPlan(t, limits.Amount{Bytes: 32 * mib, Messages: 64}, kib, 7),
		small(t),
	} {
		r := flow.NewBudget(&p)
		r.Resize(1)
		h := begin(t, r)
		open(t, r)
		large, _ := waiters(p.Large, 0)
		require.True(t, r.Acquire(flow.Large, large[0]))
		r.End(h)
	}
}
