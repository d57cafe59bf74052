package limits_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/limits"
)

// small is a plan with few windows: 2 MiB for 4 workers, whose windows are 16.5 KiB each.
func small(t testing.TB) limits.Plan {
	p := newPlan(t, limits.Amount{Bytes: 2 * mib}, 256*kib, 4)
	require.Equal(t, 16*kib+512, p.Window)
	require.Equal(t, 7, p.Callers)
	require.Greater(t, p.Spare, 500*kib)
	return p
}

// begin gives a handler its window.
func begin(t testing.TB, r *limits.Room) *limits.Hold {
	h := new(limits.Hold)
	require.True(t, r.Begin(h))
	return h
}

// open opens a stream.
func open(t testing.TB, r *limits.Room) *limits.Hold {
	c, h := new(limits.Claim), new(limits.Hold)
	require.True(t, r.Open(c))
	r.Opened(c, h)
	return h
}

// fillSpare lets a stream that takes what comes, and whose window is from elsewhere, hold all but
// so many bytes of the spare room.
func fillSpare(t testing.TB, r *limits.Room, but int) *limits.Hold {
	p := r.Plan()
	h := &limits.Hold{Base: uint32(p.Window)}
	require.True(t, r.Fit(h, uint64(p.Window+p.Spare-but)))
	return h
}

// claims returns claims of the given priorities, and a function that returns which of them have
// been granted, in the order of that, since it was called last.
func claims(bytes int, priorities ...int8) (all []*limits.Claim, granted func() []int) {
	var got []int
	for i, p := range priorities {
		all = append(all, &limits.Claim{Priority: p, Bytes: bytes, Granted: func() { got = append(got, i) }})
	}
	return all, func() (now []int) {
		now, got = got, nil
		return now
	}
}

func TestEveryWorkerHasItsWindow(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	fillSpare(t, r, 0)
	var holds []*limits.Hold
	for range p.Workers {
		h := begin(t, r)
		require.Equal(t, limits.Workers, h.Source)
		require.EqualValues(t, p.Window, h.Bytes(), "nothing is spare")
		holds = append(holds, h)
	}
	var h limits.Hold
	require.False(t, r.Begin(&h), "there are no more workers")
	require.Zero(t, h)
	r.End(holds[0])
	require.Zero(t, *holds[0])
	begin(t, r)
}

func TestHandlersBeginWithMoreWhileHalfOfTheSpareRoomIsFree(t *testing.T) {
	p := defaults(t)
	r := limits.NewRoom(&p)
	grown := 0
	for range p.Workers {
		switch h := begin(t, r); h.Extra {
		case 64 * kib:
			grown++
		default:
			require.Zero(t, h.Extra)
		}
	}
	require.Equal(t, p.Spare/2/(64*kib), grown, "nothing was taken: they have half of what is spare in all")
	require.Equal(t, p.Workers*p.Window+grown*64*kib, r.Load().Windows)

	r, grown = limits.NewRoom(&p), 0
	for range p.Workers {
		h := begin(t, r)
		r.Took(h)
		if h.Extra > 0 {
			grown++
		}
	}
	require.Equal(t, p.Spare/2/(64*kib)+1, grown, "until no more than half is free")
}

func TestFirstGrowthIsAtMostAnEighthOfWhatIsSpare(t *testing.T) {
	p := newPlan(t, limits.Amount{Bytes: 64 * kib}, kib, 2)
	r := limits.NewRoom(&p)
	require.EqualValues(t, p.Spare/8, begin(t, r).Extra)
}

func TestAWindowFromElsewhereGrowsAllTheSame(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	var h limits.Hold
	r.Lend(&h)
	require.Equal(t, limits.Elsewhere, h.Source)
	require.EqualValues(t, p.Window, h.Base)
	require.EqualValues(t, 64*kib, h.Extra)
	require.Equal(t, 64*kib, r.Load().Windows, "what is guaranteed is not from this room")
	r.Took(&h)
	r.Grow(&h, 85*kib, 0)
	require.EqualValues(t, 85*kib, h.Bytes())
	r.End(&h)
	require.Zero(t, r.Load())
	for range p.Workers {
		begin(t, r)
	}

	nested := limits.Hold{Base: uint32(p.Window)} // of a call within a call
	r.Grow(&nested, 30*kib, 0)
	require.EqualValues(t, 30*kib, nested.Bytes())
	r.End(&nested)
	require.Equal(t, p.Workers*(p.Window+64*kib), r.Load().Windows, "of the four that have begun")
}

func TestStreamsOfThisSideHaveTheirWindowsAndHalfOfWhatIsSpare(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	sources := map[limits.Source]int{}
	var last *limits.Hold
	for range p.Callers + p.Spare/2/p.Window {
		last = open(t, r)
		sources[last.Source]++
		require.EqualValues(t, p.Window, last.Bytes())
	}
	require.Equal(t, map[limits.Source]int{limits.Callers: p.Callers, limits.Spare: p.Spare / 2 / p.Window}, sources)
	require.Equal(t, (p.Callers+p.Spare/2/p.Window)*p.Window, r.Load().Windows)

	all, granted := claims(0, 0)
	require.False(t, r.Open(all[0]), "the rest is for those that take something")
	require.Equal(t, 1, r.Load().Opening)
	limits.Grant(r.Took(last))
	require.Equal(t, []int{0}, granted(), "one of them has")
	var h limits.Hold
	r.Opened(all[0], &h)
	require.Equal(t, limits.Spare, h.Source)
}

func TestStreamsThatWaitAreOpenedByPriorityAndThenInTheirOrder(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	fillSpare(t, r, 0)
	var holds []*limits.Hold
	for range p.Callers {
		holds = append(holds, open(t, r))
	}
	all, granted := claims(0, 0, 1, 0, 1, -1)
	for _, c := range all {
		require.False(t, r.Open(c))
	}
	var order []int
	for _, h := range holds[:len(all)] {
		limits.Grant(r.End(h))
		got := granted()
		require.Len(t, got, 1, "each makes room for one")
		order = append(order, got...)
	}
	require.Equal(t, []int{1, 3, 0, 2, 4}, order)
	require.Zero(t, r.Load().Opening)
}

func TestNothingOfItsPriorityOrBelowPassesTheFirstThatWaits(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	all, granted := claims(p.Large/2+1, 0, 0)
	require.True(t, r.Allow(all[0]))
	require.False(t, r.Allow(all[1]))
	others, _ := claims(1, 0, -1, 1)
	require.False(t, r.Allow(others[0]), "of its priority")
	require.False(t, r.Allow(others[1]), "below")
	require.True(t, r.Allow(others[2]), "above: there is room for it")
	require.Equal(t, 2+1, r.Load().Asking)
	limits.Grant(r.Disallow(all[0].Bytes))
	require.Equal(t, []int{1}, granted())
	require.Zero(t, r.Load().Asking)
}

func TestLargeBlocksAreAllowedAsLongAsTheyFitTogether(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	all, granted := claims(p.Large/4, 0, 0, 0, 0, 0, 0)
	for i, c := range all {
		require.Equal(t, i < 4, r.Allow(c))
	}
	require.Equal(t, limits.Load{Large: p.Large / 4 * 4, Asking: 2}, r.Load())
	limits.Grant(r.Disallow(0))
	require.Empty(t, granted())
	limits.Grant(r.Disallow(2 * (p.Large / 4)))
	require.Equal(t, []int{4, 5}, granted())
	limits.Grant(r.Disallow(4 * (p.Large / 4)))
	whole, _ := claims(p.Large, 0)
	require.True(t, r.Allow(whole[0]), "there is room for the largest message")
	r.Disallow(p.Large)
	require.Zero(t, r.Load())
}

func TestAClaimIsWithdrawnFromTheLineInWhichItWaits(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	fillSpare(t, r, 0)
	var holds []*limits.Hold
	for range p.Callers {
		holds = append(holds, open(t, r))
	}
	r.Allow(&limits.Claim{Bytes: p.Large})
	asks, allowed := claims(1, 0, 0)
	opens, opened := claims(0, 0, 0)
	withdraw := func(c *limits.Claim, waits bool) {
		waited, granted := r.Withdraw(c)
		require.Equal(t, waits, waited)
		require.Empty(t, granted)
	}

	require.False(t, r.Allow(asks[0]))
	withdraw(asks[0], true) // and nobody else waits
	for i := range 2 {
		require.False(t, r.Allow(asks[i]))
		require.False(t, r.Open(opens[i]))
	}
	withdraw(asks[0], true)
	require.Equal(t, limits.Load{Windows: r.Load().Windows, Large: p.Large, Opening: 2, Asking: 1}, r.Load())
	withdraw(asks[0], false)
	withdraw(opens[1], true)
	limits.Grant(r.End(holds[0]))
	limits.Grant(r.Disallow(p.Large))
	require.Equal(t, []int{0}, opened())
	require.Equal(t, []int{1}, allowed())
	withdraw(opens[0], false)
	withdraw(asks[1], false)
	require.Equal(t, limits.Load{Windows: r.Load().Windows, Large: 1}, r.Load())
}

func TestWhoIsWithdrawnLetsThoseBehindGo(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	first, _ := claims(p.Large, 0, 1)
	behind, granted := claims(10, 0, 0)
	r.Allow(&limits.Claim{Bytes: p.Large / 2})
	require.False(t, r.Allow(first[0]))
	require.False(t, r.Allow(behind[0]))
	require.False(t, r.Allow(behind[1]))
	waited, claims := r.Withdraw(first[0])
	limits.Grant(claims)
	require.True(t, waited)
	require.Equal(t, []int{0, 1}, granted())
}

func TestWindowsGrowByTheirShareOfWhatIsFree(t *testing.T) {
	p := small(t)
	w := uint64(p.Window)
	for _, c := range []struct {
		name        string
		busy        int // bytes of the spare room that others hold
		extra       int // by how much the window has grown
		want, least uint64
		bytes       uint64
	}{
		{"nothing is wanted", 0, 0, 0, 0, w},
		{"what is wanted fits", 0, 0, w + 1000, 0, w + 1000},
		{"for a start, more than an eighth", p.Spare/2 - 1, 0, w + 64*kib, 0, w + 64*kib},
		{"an eighth of what is free", 0, 0, 10 * mib, 0, w + uint64(p.Spare/8)},
		{"half is taken", p.Spare / 2, 0, w + 64*kib, 0, w + uint64((p.Spare-p.Spare/2)/8)},
		{"nothing is free", p.Spare, 0, 10 * mib, 0, w},
		{"its own counts as free", p.Spare - 80_000, 80_000, 10 * mib, 0, w + 10_000},
		{"others need the room", p.Spare - 80_000, 80_000, w + 80_000, 0, w + 10_000},
		{"what was promised stands", p.Spare - 80_000, 80_000, w + 80_000, w + 60_000, w + 60_000},
		{"it stays as it is", 0, 40_000, w + 40_000, 0, w + 40_000},
		{"less is wanted", 0, 40_000, w + 10_000, 0, w + 10_000},
		{"less is wanted than was promised", 0, 40_000, w, w + 30_000, w + 30_000},
		{"no less than what is guaranteed", 0, 40_000, 1, 1, w},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := limits.NewRoom(&p)
			fillSpare(t, r, p.Spare-c.busy)
			h := open(t, r)
			r.Took(h)
			require.True(t, r.Fit(h, w+uint64(c.extra)))
			r.Grow(h, c.want, c.least)
			require.Equal(t, c.bytes, h.Bytes())
			require.Equal(t, c.busy+int(c.bytes), r.Load().Windows)
		})
	}
}

func TestManyWindowsThatGrowLeaveSomeRoom(t *testing.T) {
	p := defaults(t)
	r := limits.NewRoom(&p)
	for range 200 {
		var h limits.Hold
		r.Lend(&h)
		r.Took(&h)
		r.Grow(&h, 512*kib, 0)
	}
	require.Less(t, r.Load().Windows, p.Spare)
	require.Greater(t, r.Load().Windows, p.Spare*9/10)
}

func TestWhatNobodyHasTakenFromHasHalfOfTheSpareRoomInAll(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	var holds []*limits.Hold
	for range 50 {
		h := new(limits.Hold)
		r.Lend(h)
		r.Grow(h, 512*kib, h.Bytes())
		holds = append(holds, h)
	}
	require.Equal(t, p.Spare/2, r.Load().Windows)
	require.False(t, r.Fit(holds[0], holds[0].Bytes()+1), "nor does a Block that nobody waits for get there")
	require.True(t, r.Fit(holds[0], holds[0].Bytes()))
	r.Took(holds[0])
	r.Took(holds[0]) // the second time means nothing
	require.True(t, r.Fit(holds[0], holds[0].Bytes()+1))
	require.Zero(t, holds[49].Extra)
	r.Grow(holds[49], 512*kib, 0)
	require.Positive(t, holds[49].Extra, "there is room for others again")
}

func TestFitTakesAllOrNothing(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	busy := fillSpare(t, r, 1000)
	h := open(t, r)
	r.Took(h)
	require.False(t, r.Fit(h, h.Bytes()+1001))
	require.EqualValues(t, p.Window, h.Bytes())
	require.True(t, r.Fit(h, h.Bytes()+1000))
	require.EqualValues(t, p.Window+1000, h.Bytes())
	require.True(t, r.Fit(h, 1), "it is larger")
	require.EqualValues(t, p.Window+1000, h.Bytes())
	r.End(busy)
	require.Equal(t, p.Window+1000, r.Load().Windows)
}

func TestWindowsShrinkToWhatIsNeeded(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	h := fillSpare(t, r, 0)
	for range p.Callers {
		open(t, r)
	}
	all, granted := claims(0, 0, 0)
	for _, c := range all {
		require.False(t, r.Open(c))
	}
	limits.Grant(r.Shrink(h, h.Bytes()+1))
	require.Empty(t, granted())
	limits.Grant(r.Shrink(h, h.Bytes()-uint64(p.Window)+1))
	require.Empty(t, granted(), "a byte is missing")
	limits.Grant(r.Shrink(h, h.Bytes()-1))
	require.Equal(t, []int{0}, granted())
	limits.Grant(r.Shrink(h, 0))
	require.Equal(t, []int{1}, granted())
	require.EqualValues(t, p.Window, h.Bytes(), "no less than what is guaranteed")
	require.Nil(t, r.Shrink(h, 0))
}

func TestEndGivesBackAllOfAWindow(t *testing.T) {
	p := small(t)
	for _, c := range []struct {
		name string
		hold func(*limits.Room) *limits.Hold
	}{
		{"nothing", func(*limits.Room) *limits.Hold { return new(limits.Hold) }},
		{"of a handler", func(r *limits.Room) *limits.Hold { return begin(t, r) }},
		{"of a handler that has taken something", func(r *limits.Room) *limits.Hold {
			h := begin(t, r)
			r.Took(h)
			return h
		}},
		{"of a stream of this side", func(r *limits.Room) *limits.Hold { return open(t, r) }},
		{"from the spare room, and larger by now", func(r *limits.Room) (h *limits.Hold) {
			for range p.Callers + 1 {
				h = open(t, r)
			}
			require.Equal(t, limits.Spare, h.Source)
			r.Grow(h, 30*kib, 0)
			require.EqualValues(t, 30*kib, h.Bytes())
			return h
		}},
		{"from elsewhere", func(r *limits.Room) *limits.Hold {
			h := new(limits.Hold)
			r.Lend(h)
			return h
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := limits.NewRoom(&p)
			h := c.hold(r)
			others := 0
			if h.Source == limits.Spare {
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

func TestResizeKeepsToWhatThePeerWasTold(t *testing.T) {
	for _, c := range []struct {
		name             string
		soft             limits.Amount
		largest, workers int
		bytes            int
		room, opens      int
	}{
		{"to the same", limits.Amount{Bytes: 32 * mib}, 64 * kib, 1024, 32 * mib, 32 * mib, 8 * mib},
		{"larger", limits.Amount{Bytes: 32 * mib}, 64 * kib, 1024, 64 * mib, 64 * mib, 16 * mib},
		{"smaller", limits.Amount{Bytes: 32 * mib}, 64 * kib, 1024, 24 * mib, 24 * mib, 6 * mib},
		{"none", limits.Amount{Bytes: 64 * mib}, 64 * kib, 1024, 0, 32 * mib, 8 * mib},
		{"not below eight of the largest messages", limits.Amount{Bytes: 32 * mib}, 4 * mib, 1024, 1, 32 * mib, 8 * mib},
		{"nor below what calls within calls and one of each need", limits.Amount{Bytes: 32 * mib}, 64 * kib, 1024, mib,
			(4*(8*mib+64*kib+512+2*4096) + 2) / 3, (4*(8*mib+64*kib+512+2*4096) + 2) / 3 / 4},
		{"nor below the least", limits.Amount{Bytes: 64 * kib}, kib, 1, 1, 64 * kib, 16 * kib},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlan(t, c.soft, c.largest, c.workers)
			r := limits.NewRoom(&p)
			got, granted := r.Resize(c.bytes)
			require.Empty(t, granted)
			require.Equal(t, *got, r.Plan())
			require.Equal(t, []int{c.room, c.opens}, []int{got.Room, got.Opens})
			require.Equal(t, got.Room, got.Opens+got.Nested+got.NestedOwn+got.Large+(got.Workers+got.Callers)*got.Window+got.Spare)
			require.Zero(t, r.Load(), "nothing is promised")
			rest := *got
			rest.Room, rest.Opens, rest.Spare = p.Room, p.Opens, p.Spare
			require.Equal(t, p, rest, "all else stands")
		})
	}
}

// TestResizeToTheSameChangesNothing is about plans of all kinds.
func TestResizeToTheSameChangesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 5))
	for range 50_000 {
		soft := limits.Amount{Messages: upTo(rnd, 1<<20), Bytes: 1 + upTo(rnd, 1<<30)}
		p, err := limits.NewPlan(soft, rnd.IntN(max(soft.Bytes, limits.LeastRoom)/8+1), 1+upTo(rnd, 2000))
		if err != nil {
			continue
		}
		r := limits.NewRoom(&p)
		if got, _ := r.Resize(p.Room); *got != p {
			t.Fatalf("%+v became %+v", p, *got)
		}
		r.Resize(1)
		if got, _ := r.Resize(p.Room); *got != p {
			t.Fatalf("%+v became %+v after smaller ones", p, *got)
		}
	}
}

func TestAfterLimitsBecameSmallerNewPromisesWaitUntilTheyFit(t *testing.T) {
	p := newPlan(t, limits.Amount{Bytes: 32 * mib}, 64*kib, 64)
	r := limits.NewRoom(&p)
	big := fillSpare(t, r, 0)
	var workers, callers []*limits.Hold
	for range p.Workers / 2 {
		workers = append(workers, begin(t, r))
	}
	for range p.Callers {
		callers = append(callers, open(t, r))
	}
	before := r.Load().Windows
	smaller, granted := r.Resize(16 * mib)
	require.Empty(t, granted)
	require.Equal(t, before, r.Load().Windows, "what was promised stands")
	require.Greater(t, before, (p.Workers+p.Callers)*p.Window+smaller.Spare, "and is more than there is room for")

	var h limits.Hold
	require.False(t, r.Begin(&h))
	all, opened := claims(0, 0)
	limits.Grant(r.End(callers[0]))
	require.False(t, r.Open(all[0]))
	large, _ := claims(p.Large, 0)
	require.True(t, r.Allow(large[0]), "a large Block has a place of its own")
	r.Lend(&h)
	require.EqualValues(t, p.Window, h.Bytes(), "what was paid elsewhere can be had, and no more")

	limits.Grant(r.End(big))
	require.Equal(t, []int{0}, opened())
	begin(t, r)
	for _, h := range append(workers, callers...) {
		r.End(h)
	}
}

func TestAHandlerThatCameTooLateIsToldOfItsWindow(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	late, told := claims(0, 0, 0)
	require.False(t, r.Late(late[0]), "there is one")
	var holds []*limits.Hold
	for range p.Workers {
		holds = append(holds, begin(t, r))
	}
	require.True(t, r.Late(late[0]))
	require.True(t, r.Late(late[1]), "in place of the other")
	limits.Grant(r.End(holds[0]))
	limits.Grant(r.End(holds[1]))
	require.Equal(t, []int{1}, told(), "once")
}

func TestStreamsWithinCallsHaveAShareOfTheirOwn(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	fillSpare(t, r, 0)
	var holds []*limits.Hold
	for range p.NestedOwn / p.Window {
		h := new(limits.Hold)
		require.True(t, r.Nest(h))
		require.EqualValues(t, p.Window, h.Bytes())
		holds = append(holds, h)
	}
	var more limits.Hold
	require.False(t, r.Nest(&more), "it never waits")
	require.Empty(t, r.End(&more))
	require.Empty(t, r.End(holds[0]))
	require.True(t, r.Nest(&more))
}

func TestLargerLimitsLetThoseWhoWaitGoOn(t *testing.T) {
	p := small(t)
	r := limits.NewRoom(&p)
	fillSpare(t, r, 0)
	for range p.Callers {
		open(t, r)
	}
	all, granted := claims(0, 0)
	require.False(t, r.Open(all[0]))
	_, got := r.Resize(p.Room * 2)
	limits.Grant(got)
	require.Equal(t, []int{0}, granted())
}

// TestNobodyWaitsForEverInASmallerRoom makes the room as small as can be: when nothing is promised,
// one of each finds its place.
func TestNobodyWaitsForEverInASmallerRoom(t *testing.T) {
	for _, p := range []limits.Plan{
		newPlan(t, limits.Amount{Bytes: 32 * mib}, kib, 1),
		newPlan(t, limits.Amount{Bytes: 32 * mib}, kib, 1024),
		newPlan(t, limits.Amount{Bytes: 32 * mib, Messages: 64}, kib, 7),
		small(t),
	} {
		r := limits.NewRoom(&p)
		r.Resize(1)
		h := begin(t, r)
		open(t, r)
		large, _ := claims(p.Large, 0)
		require.True(t, r.Allow(large[0]))
		r.End(h)
	}
}

// TestManyGoroutinesShareARoom has many streams begin, open, ask, grow, wait, give up and end at
// the same time. No more is ever promised than there is, nobody is granted anything twice, and in
// the end all of it is back.
func TestManyGoroutinesShareARoom(t *testing.T) {
	const goroutines, rounds = 16, 2000
	p := newPlan(t, limits.Amount{Bytes: mib}, 64*kib, 4)
	r := limits.NewRoom(&p)
	room := (p.Workers+p.Callers)*p.Window + p.Spare
	var waited, gaveUp, late atomic.Int64

	// wait waits until c is granted or patience is at its end, and reports whether c got its room.
	wait := func(rnd *rand.Rand, c *limits.Claim, granted *atomic.Int32) bool {
		waited.Add(1)
		for range rnd.IntN(50) {
			if granted.Load() > 0 {
				return true
			}
			runtime.Gosched()
		}
		withdrawn, others := r.Withdraw(c)
		limits.Grant(others)
		if withdrawn {
			gaveUp.Add(1)
			return false
		}
		late.Add(1)
		for granted.Load() == 0 { // it is about to be told
			runtime.Gosched()
		}
		return true
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 6))
			claim := func(bytes int) (*limits.Claim, *atomic.Int32) {
				granted := new(atomic.Int32)
				return &limits.Claim{Priority: int8(rnd.IntN(3)), Bytes: bytes, Granted: func() {
					if granted.Add(1) > 1 {
						t.Error("a claim was granted twice")
					}
				}}, granted
			}
			for range rounds {
				var h limits.Hold
				switch rnd.IntN(4) {
				case 0:
					r.Begin(&h)
				case 1:
					r.Lend(&h)
				default:
					c, granted := claim(0)
					if r.Open(c) || wait(rnd, c, granted) {
						r.Opened(c, &h)
					}
				}
				for range rnd.IntN(8) {
					if h.Base == 0 {
						break
					}
					runtime.Gosched() // so that others hold something at the same time
					switch rnd.IntN(4) {
					case 0:
						limits.Grant(r.Took(&h))
					case 1:
						limits.Grant(r.Grow(&h, 2*h.Bytes(), h.Bytes()/2))
					case 2:
						limits.Grant(r.Shrink(&h, h.Bytes()/2))
					case 3:
						r.Fit(&h, h.Bytes()+uint64(rnd.IntN(10*kib)))
					}
					if l := r.Load(); l.Windows > room || l.Large > p.Large {
						t.Errorf("%+v is promised, and there is room for %d and %d", l, room, p.Large)
					}
				}
				if rnd.IntN(3) == 0 {
					c, granted := claim(1 + rnd.IntN(p.Large))
					if r.Allow(c) || wait(rnd, c, granted) {
						runtime.Gosched()
						limits.Grant(r.Disallow(c.Bytes))
					}
				}
				limits.Grant(r.End(&h))
			}
		})
	}
	wg.Wait()
	require.Zero(t, r.Load(), "all of it is back")
	require.Positive(t, waited.Load())
	require.Positive(t, gaveUp.Load())
	for range p.Workers {
		begin(t, r)
	}
	for range p.Callers {
		open(t, r)
	}
	t.Logf("%d have waited, %d have given up, %d at the moment in which their turn came", waited.Load(), gaveUp.Load(), late.Load())
}

// BenchmarkRoom has one stream after the other begin, take and end.
func BenchmarkRoom(b *testing.B) {
	p := defaults(b)
	r := limits.NewRoom(&p)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var h limits.Hold
			r.Lend(&h)
			r.Took(&h)
			r.Grow(&h, h.Bytes(), 0)
			r.End(&h)
		}
	})
}
