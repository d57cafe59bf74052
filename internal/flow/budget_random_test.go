package flow_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// silent is a peer that is told of extra credit, and does not use it.
type silent struct{}

func (silent) GrantExtra() {}

// randomClaim is a claim of a randomBudget, which has its room or waits for it.
type randomClaim struct {
	flow.Waiter
	granted bool
}

// debt is room for a large Block.
type debt struct {
	class flow.Class
	bytes int
}

// randomBudget is a Budget and its users.
type randomBudget struct {
	*flow.Budget
	t       *testing.T
	rnd     *rand.Rand
	seed    uint64
	windows []*flow.Window
	claims  []*randomClaim // for large Blocks
	debts   []*debt
}

// pick removes and returns a random element of from, or returns the zero value if there is none.
func pick[E any](rnd *rand.Rand, from *[]E) (e E, ok bool) {
	if len(*from) == 0 {
		return e, false
	}
	i := rnd.IntN(len(*from))
	e = (*from)[i]
	*from = append((*from)[:i:i], (*from)[i+1:]...)
	return e, true
}

// claim claims room for a large Block.
func (b *randomBudget) claim() {
	c := &randomClaim{}
	c.Waiter = flow.Waiter{Priority: priority.Priority(b.rnd.IntN(3)), Bytes: 1 + b.rnd.IntN(b.Plan().Large), Granted: func(bool) {
		require.False(b.t, c.granted, "seed %d", b.seed)
		c.granted = true
	}}
	c.granted = b.Acquire(flow.Large, &c.Waiter)
	b.claims = append(b.claims, c)
}

// leave ends a claim: it becomes a debt, or is withdrawn.
func (b *randomBudget) leave() {
	c, ok := pick(b.rnd, &b.claims)
	switch {
	case !ok:
	case c.granted:
		b.debts = append(b.debts, &debt{c.Source(), c.Bytes})
	default:
		waited, granted := b.Withdraw(&c.Waiter)
		require.True(b.t, waited, "seed %d", b.seed)
		flow.Grant(granted)
	}
}

// release releases a debt, or moves it.
func (b *randomBudget) release() {
	d, ok := pick(b.rnd, &b.debts)
	switch {
	case !ok:
	case d.class == flow.Large && b.rnd.IntN(3) == 0:
		moved, granted := b.Move(d.bytes)
		if b.debts = append(b.debts, d); moved {
			d.class = flow.Elastic
		}
		flow.Grant(granted)
	default:
		flow.Grant(b.Budget.Release(d.class, d.bytes))
	}
}

// begin begins a window of some class.
func (b *randomBudget) begin() {
	w, ok := new(flow.Window), false
	switch b.rnd.IntN(4) {
	case 0:
		if l := b.Load()[flow.Served]; l.Granted < l.Minimum {
			b.Begin(w)
			ok = true
		}
	case 1:
		ok = b.Nest(w)
	case 2:
		m := new(flow.Waiter)
		if ok = b.Acquire(flow.Made, m); ok {
			b.Opened(m, w)
		} else {
			_, granted := b.Withdraw(m)
			flow.Grant(granted)
		}
	case 3:
		var granted []*flow.Waiter
		if ok, granted = b.TakeExtra(w, uint64(1+b.rnd.IntN(32*kib)), silent{}); ok {
			var begun flow.Window
			b.Lend(&begun)
			flow.Grant(b.Join(w, begun))
		}
		flow.Grant(granted)
	}
	if ok {
		b.windows = append(b.windows, w)
	}
}

// resize takes from a window, resizes or ends it.
func (b *randomBudget) resize() {
	w, ok := pick(b.rnd, &b.windows)
	if !ok {
		return
	}
	least := uint64(b.rnd.IntN(int(w.Bytes()) + 1))
	switch b.rnd.IntN(5) {
	case 0:
		flow.Grant(b.End(w))
		return
	case 1:
		flow.Grant(b.Took(w))
	case 2:
		flow.Grant(b.Shrink(w, least))
	default:
		flow.Grant(b.Grow(w, uint64(b.rnd.IntN(2*mib)), least))
	}
	b.windows = append(b.windows, w)
}

// check requires that no class exceeds its room, and that no claim waits for room that is free.
func (b *randomBudget) check() {
	l := b.Load()
	for c := flow.Served; c < flow.Elastic; c++ {
		require.GreaterOrEqual(b.t, l[c].Granted, 0, "seed %d, class %d", b.seed, c)
		require.LessOrEqual(b.t, l[c].Granted, l[c].Minimum, "seed %d, class %d", b.seed, c)
	}
	elastic := l[flow.Elastic].Minimum - l[flow.Elastic].Granted - l[flow.Initial].Granted
	require.GreaterOrEqual(b.t, elastic, 0, "seed %d", b.seed)
	var first *randomClaim
	for _, c := range b.claims {
		if !c.granted && (first == nil || c.Priority > first.Priority) {
			first = c
		}
	}
	if first != nil {
		require.Greater(b.t, first.Bytes, max(elastic, l[flow.Large].Minimum-l[flow.Large].Granted), "seed %d", b.seed)
	}
}

// end releases everything, and requires that all room is free.
func (b *randomBudget) end() {
	for len(b.claims)+len(b.debts) > 0 {
		b.leave()
		b.release()
	}
	for _, w := range b.windows {
		flow.Grant(b.End(w))
	}
	for c, l := range b.Load() {
		if flow.Class(c) != flow.Initial {
			require.Zero(b.t, l.Granted, "seed %d, class %d", b.seed, c)
		}
		require.Zero(b.t, l.Waiting, "seed %d, class %d", b.seed, c)
	}
}

// TestBudget_RandomUsers plays random users of a Budget: no room is lost, and none waits in vain.
func TestBudget_RandomUsers(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		room := 64*kib + rnd.IntN(mib)
		p := newPlan(t, limits.Amount{Bytes: room}, 1+rnd.IntN(room/8), 1+rnd.IntN(flow.MostWorkers(room, 64*kib)))
		b := &randomBudget{Budget: flow.NewBudget(&p), t: t, rnd: rnd, seed: seed}
		for range 200 {
			[]func(){b.claim, b.leave, b.release, b.begin, b.resize}[rnd.IntN(5)]()
			b.check()
		}
		b.end()
	}
}
