package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

func TestBegin_WindowPerWorker(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	fillElastic(t, r, 0)
	var holds []*flow.Window
	for range p.Workers {
		h := begin(t, r)
		require.Equal(t, flow.Served, h.Class)
		require.EqualValues(t, p.Window, h.Bytes(), "nothing is spare")
		holds = append(holds, h)
	}
	r.End(holds[0])
	require.Zero(t, *holds[0])
	begin(t, r)
}

func TestBegin_FirstGrowth(t *testing.T) {
	p := defaults(t)
	r := flow.NewBudget(&p)
	full := 0
	for range p.Workers {
		if h := begin(t, r); h.Bytes() == 64*kib {
			full++
		}
	}
	require.Equal(t, p.Room/8/(60*kib), full, "nothing was taken: they have an eighth of the room in all")
	require.Equal(t, p.Workers*p.Window+p.Room/8, loadOf(r).Windows)

	r, full = flow.NewBudget(&p), 0
	for range p.Workers {
		h := begin(t, r)
		r.Took(h)
		if h.Bytes() == 64*kib {
			full++
		}
	}
	require.Equal(t, (p.Elastic-8*60*kib)/(60*kib)+1, full, "until it is more than an eighth of what is free")
	require.Less(t, loadOf(r).Windows, p.Workers*p.Window+p.Elastic)
}

func TestBegin_FirstGrowthLimit(t *testing.T) {
	p := newPlan(t, limits.Amount{Bytes: 64 * kib}, kib, 2)
	r := flow.NewBudget(&p)
	require.EqualValues(t, p.Elastic/8, begin(t, r).Extra)
}

func TestLend_Grows(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	var h flow.Window
	r.Lend(&h)
	require.Equal(t, flow.Prepaid, h.Class)
	require.EqualValues(t, p.Window, h.Base)
	require.EqualValues(t, 64*kib, h.Bytes())
	require.EqualValues(t, h.Extra, loadOf(r).Windows, "the guarantee is not from this room")
	r.Took(&h)
	r.Grow(&h, 85*kib, 0)
	require.EqualValues(t, 85*kib, h.Bytes())
	r.End(&h)
	require.Zero(t, loadOf(r))
	for range p.Workers {
		begin(t, r)
	}

	nested := flow.Window{Base: uint32(p.Window)} // of a call within a call
	r.Grow(&nested, 30*kib, 0)
	require.EqualValues(t, 30*kib, nested.Bytes())
	r.End(&nested)
	require.Equal(t, p.Workers*64*kib, loadOf(r).Windows, "of the four that have begun")
}

func TestOpen_FirstWindowsLarger(t *testing.T) {
	p := defaults(t)
	r := flow.NewBudget(&p)
	large := 0
	for range 2 * p.Callers {
		var c flow.Waiter
		var h flow.Window
		require.True(t, r.Acquire(flow.Made, &c))
		if r.Opened(&c, &h); h.Bytes() == 64*kib {
			large++
		}
	}
	require.Equal(t, p.Room/8/(60*kib), large, "which leaves most of the elastic room to other streams")
}

func TestOpen_NumberOfStreams(t *testing.T) {
	p := defaults(t)
	r := flow.NewBudget(&p)
	for range p.Callers + p.Elastic/2/p.Window { // while an eighth of the room is for their growth
		var c flow.Waiter
		var h flow.Window
		require.True(t, r.Acquire(flow.Made, &c))
		r.Opened(&c, &h)
	}
}

func TestOpen_Share(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	spare := (p.Elastic - 7*p.Window) / p.Window
	sources := map[flow.Class]int{}
	var last *flow.Window
	for range p.Callers + spare {
		last = open(t, r)
		sources[last.Class]++
		require.EqualValues(t, p.Window, last.Bytes())
	}
	require.Equal(t, map[flow.Class]int{flow.Made: p.Callers, flow.Elastic: spare}, sources)
	require.Equal(t, (p.Callers+spare)*p.Window, loadOf(r).Windows)

	all, granted := waiters(0, 0)
	require.False(t, r.Acquire(flow.Made, all[0]), "the rest is for their growth")
	require.Equal(t, 1, loadOf(r).Opening)
	flow.Grant(r.End(last))
	require.Equal(t, []int{0}, granted(), "one of them has ended")
	var h flow.Window
	r.Opened(all[0], &h)
	require.Equal(t, flow.Elastic, h.Class)
}

func TestOpen_OrderOfWaiting(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	fillElastic(t, r, 0)
	var holds []*flow.Window
	for range p.Callers {
		holds = append(holds, open(t, r))
	}
	all, granted := waiters(0, 0, 1, 0, 1, -1)
	for _, c := range all {
		require.False(t, r.Acquire(flow.Made, c))
	}
	var order []int
	for _, h := range holds[:len(all)] {
		flow.Grant(r.End(h))
		got := granted()
		require.Len(t, got, 1, "each makes room for one")
		order = append(order, got...)
	}
	require.Equal(t, []int{1, 3, 0, 2, 4}, order)
	require.Zero(t, loadOf(r).Opening)
}

func TestOpen_NoOvertaking(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	fillElastic(t, r, 0)
	all, granted := waiters(p.Large/2+1, 0, 0)
	require.True(t, r.Acquire(flow.Large, all[0]))
	require.False(t, r.Acquire(flow.Large, all[1]))
	others, _ := waiters(1, 0, -1, 1)
	require.False(t, r.Acquire(flow.Large, others[0]), "of its priority")
	require.False(t, r.Acquire(flow.Large, others[1]), "below")
	require.True(t, r.Acquire(flow.Large, others[2]), "above: there is room for it")
	require.Equal(t, 2+1, loadOf(r).Asking)
	flow.Grant(r.Release(flow.Large, all[0].Bytes))
	require.Equal(t, []int{1}, granted())
	require.Zero(t, loadOf(r).Asking)
}

func TestLarge_OutOfItsMinimum(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	windows := int(fillElastic(t, r, 0).Extra)
	all, granted := waiters(p.Large/4, 0, 0, 0, 0, 0, 0)
	for i, c := range all {
		require.Equal(t, i < 4, r.Acquire(flow.Large, c))
	}
	require.Equal(t, load{Windows: windows, Large: p.Large / 4 * 4, Asking: 2}, loadOf(r))
	flow.Grant(r.Release(flow.Large, 0))
	require.Empty(t, granted())
	flow.Grant(r.Release(flow.Large, 2*(p.Large/4)))
	require.Equal(t, []int{4, 5}, granted())
	flow.Grant(r.Release(flow.Large, 4*(p.Large/4)))
	whole, _ := waiters(p.Large, 0)
	require.True(t, r.Acquire(flow.Large, whole[0]), "there is room for the largest message")
	r.Release(flow.Large, p.Large)
	require.Equal(t, load{Windows: windows}, loadOf(r))
}

// A large Block takes elastic room while all of it fits there, and a waiting one as soon as it
// does.
func TestLarge_ElasticFirst(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	all, granted := waiters(p.Large, 0, 0, 0, 0, 0)
	fits := p.Elastic / p.Large
	for _, c := range all[:fits] {
		require.True(t, r.Acquire(flow.Large, c))
		require.Equal(t, flow.Elastic, c.Source())
	}
	require.Equal(t, load{Windows: fits * p.Large}, loadOf(r))
	require.True(t, r.Acquire(flow.Large, all[fits]))
	require.Equal(t, flow.Large, all[fits].Source())
	require.False(t, r.Acquire(flow.Large, all[fits+1]))
	flow.Grant(r.Release(flow.Elastic, p.Large))
	require.Equal(t, []int{fits + 1}, granted())
	require.Equal(t, flow.Elastic, all[fits+1].Source())
}

// Room for a Block that no application waits for moves to the elastic room, if all of it fits
// there.
func TestMove_ToElastic(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	h := fillElastic(t, r, 0)
	all, granted := waiters(p.Large, 0, 0)
	require.True(t, r.Acquire(flow.Large, all[0]))
	r.Shrink(h, h.Bytes()-uint64(p.Large)+1)
	ok, _ := r.Move(p.Large)
	require.False(t, ok, "a byte is missing")
	r.Shrink(h, h.Bytes()-1)
	ok, _ = r.Move(p.Large)
	require.True(t, ok)
	require.True(t, r.Acquire(flow.Large, all[1]), "the next one has room")
	flow.Grant(r.Release(flow.Elastic, p.Large))
	require.Empty(t, granted())
}

func TestWithdraw_FromItsLine(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	fillElastic(t, r, 0)
	var holds []*flow.Window
	for range p.Callers {
		holds = append(holds, open(t, r))
	}
	r.Acquire(flow.Large, &flow.Waiter{Bytes: p.Large})
	asks, allowed := waiters(1, 0, 0)
	opens, opened := waiters(0, 0, 0)
	withdraw := func(c *flow.Waiter, waits bool) {
		waited, granted := r.Withdraw(c)
		require.Equal(t, waits, waited)
		require.Empty(t, granted)
	}

	require.False(t, r.Acquire(flow.Large, asks[0]))
	withdraw(asks[0], true) // and no other waiter waits
	for i := range 2 {
		require.False(t, r.Acquire(flow.Large, asks[i]))
		require.False(t, r.Acquire(flow.Made, opens[i]))
	}
	withdraw(asks[0], true)
	require.Equal(t, load{Windows: loadOf(r).Windows, Large: p.Large, Opening: 2, Asking: 1}, loadOf(r))
	withdraw(asks[0], false)
	withdraw(opens[1], true)
	flow.Grant(r.End(holds[0]))
	flow.Grant(r.Release(flow.Large, p.Large))
	require.Equal(t, []int{0}, opened())
	require.Equal(t, []int{1}, allowed())
	withdraw(opens[0], false)
	withdraw(asks[1], false)
	require.Equal(t, load{Windows: loadOf(r).Windows, Large: 1}, loadOf(r))
}

func TestWithdraw_FreesThoseBehind(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	fillElastic(t, r, 0)
	first, _ := waiters(p.Large, 0, 1)
	behind, granted := waiters(10, 0, 0)
	r.Acquire(flow.Large, &flow.Waiter{Bytes: p.Large / 2})
	require.False(t, r.Acquire(flow.Large, first[0]))
	require.False(t, r.Acquire(flow.Large, behind[0]))
	require.False(t, r.Acquire(flow.Large, behind[1]))
	waited, waiters := r.Withdraw(first[0])
	flow.Grant(waiters)
	require.True(t, waited)
	require.Equal(t, []int{0, 1}, granted())
}

func TestGrow_ByShare(t *testing.T) {
	p := small(t)
	w := uint64(p.Window)
	for _, c := range []struct {
		name        string
		busy        int // bytes of the elastic room that other windows hold
		extra       int // growth of the window
		want, least uint64
		bytes       uint64
	}{
		{"nothing is wanted", 0, 0, 0, 0, w},
		{"the wanted size fits", 0, 0, w + 1000, 0, w + 1000},
		{"four fifths of the free room", 0, 0, 10 * mib, 0, w + uint64(p.Elastic/5*4)},
		{"half is taken", p.Elastic / 2, 0, 10 * mib, 0, w + uint64((p.Elastic-p.Elastic/2)/5*4)},
		{"nothing is free", p.Elastic, 0, 10 * mib, 0, w},
		{"its own counts as free", p.Elastic - 80_000, 80_000, 10 * mib, 0, w + 64_000},
		{"other streams need the room", p.Elastic - 80_000, 80_000, w + 80_000, 0, w + 64_000},
		{"granted credit stands", p.Elastic - 80_000, 80_000, w + 80_000, w + 70_000, w + 70_000},
		{"it stays as it is", 0, 40_000, w + 40_000, 0, w + 40_000},
		{"less is wanted", 0, 40_000, w + 10_000, 0, w + 10_000},
		{"less is wanted than was promised", 0, 40_000, w, w + 30_000, w + 30_000},
		{"no less than the guarantee", 0, 40_000, 1, 1, w},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := flow.NewBudget(&p)
			fillElastic(t, r, p.Elastic-c.busy)
			h := open(t, r)
			r.Took(h)
			require.True(t, fit(r, h, w+uint64(c.extra)))
			r.Grow(h, c.want, c.least)
			require.Equal(t, c.bytes, h.Bytes())
			require.Equal(t, c.busy+int(c.bytes), loadOf(r).Windows)
		})
	}
}

func TestGrow_LeavesRoom(t *testing.T) {
	p := defaults(t)
	r := flow.NewBudget(&p)
	for range 200 {
		var h flow.Window
		r.Lend(&h)
		r.Took(&h)
		r.Grow(&h, 512*kib, 0)
	}
	require.Less(t, loadOf(r).Windows, p.Elastic)
	require.Greater(t, loadOf(r).Windows, p.Elastic*19/20)
}

func TestFresh_EighthOfRoom(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	var holds []*flow.Window
	for range 50 {
		h := new(flow.Window)
		r.Lend(h)
		r.Grow(h, 512*kib, h.Bytes())
		holds = append(holds, h)
	}
	require.Equal(t, p.Room/8, loadOf(r).Windows)
	r.Took(holds[0])
	r.Took(holds[0]) // a second call has no effect
	require.Zero(t, holds[49].Extra)
	r.Grow(holds[49], 512*kib, 0)
	require.Positive(t, holds[49].Extra, "there is room for other streams again")
}

func TestFit_AllOrNothing(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	busy := fillElastic(t, r, 1000)
	h := open(t, r)
	r.Took(h)
	require.False(t, fit(r, h, h.Bytes()+1001))
	require.EqualValues(t, p.Window, h.Bytes())
	require.True(t, fit(r, h, h.Bytes()+1000))
	require.EqualValues(t, p.Window+1000, h.Bytes())
	require.True(t, fit(r, h, 1), "it is larger")
	require.EqualValues(t, p.Window+1000, h.Bytes())
	r.End(busy)
	require.Equal(t, p.Window+1000, loadOf(r).Windows)
}

func TestShrink_ToNeeded(t *testing.T) {
	p := small(t)
	r := flow.NewBudget(&p)
	h := fillElastic(t, r, 0)
	for range p.Callers {
		open(t, r)
	}
	all, granted := waiters(0, 0, 0)
	for _, c := range all {
		require.False(t, r.Acquire(flow.Made, c))
	}
	flow.Grant(r.Shrink(h, h.Bytes()+1))
	require.Empty(t, granted())
	flow.Grant(r.Shrink(h, h.Bytes()-8*uint64(p.Window)+1))
	require.Empty(t, granted(), "a byte is missing")
	flow.Grant(r.Shrink(h, h.Bytes()-1))
	require.Equal(t, []int{0}, granted(), "a window, and room for seven more to grow into")
	flow.Grant(r.Shrink(h, 0))
	require.Equal(t, []int{1}, granted())
	require.EqualValues(t, p.Window, h.Bytes(), "no less than the guarantee")
	require.Nil(t, r.Shrink(h, 0))
}
