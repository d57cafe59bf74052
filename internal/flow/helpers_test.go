package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// small is a plan with few windows: 2 MiB for 4 workers, and windows of 16.5 KiB.
func small(t testing.TB) flow.Plan {
	p := newPlan(t, limits.Amount{Bytes: 2 * mib}, 256*kib, 4)
	require.Equal(t, 16*kib+512, p.Window)
	require.Equal(t, 7, p.Callers)
	require.Greater(t, p.Elastic, 500*kib)
	return p
}

// begin gives a handler its window.
func begin(t testing.TB, r *flow.Budget) *flow.Window {
	h := new(flow.Window)
	r.Begin(h)
	return h
}

// open opens a stream with a window of the guaranteed size.
func open(t testing.TB, r *flow.Budget) *flow.Window {
	c, h := new(flow.Waiter), new(flow.Window)
	require.True(t, r.Acquire(flow.Made, c))
	r.Opened(c, h)
	flow.Grant(r.Shrink(h, 0))
	return h
}

// load is the granted part of a Budget.
type load struct{ Windows, Extra, Large, Opening, Asking int }

func loadOf(r *flow.Budget) load {
	l := r.Load()
	return load{l.Windows().Granted, l[flow.Initial].Granted, l[flow.Large].Granted, l[flow.Made].Waiting, l[flow.Large].Waiting}
}

// fit enlarges the window of h to want bytes, or returns false if the elastic room does not
// suffice.
func fit(r *flow.Budget, h *flow.Window, want uint64) bool {
	l := r.Load()
	if int(want)-int(h.Bytes()) > max(l[flow.Elastic].Minimum-l[flow.Elastic].Granted-l[flow.Initial].Granted, 0) {
		return false
	}
	flow.Grant(r.Grow(h, want, max(want, h.Bytes())))
	return true
}

// fillElastic gives a stream, which receives and has a window from elsewhere, all but the given
// bytes of the elastic room.
func fillElastic(t testing.TB, r *flow.Budget, but int) *flow.Window {
	p := r.Plan()
	h := &flow.Window{Base: uint32(p.Window)}
	require.True(t, fit(r, h, uint64(p.Window+p.Elastic-but)))
	return h
}

// waiters returns waiters of the given priorities, and a function that returns the waiters granted
// since its last call, in the order of the grants.
func waiters(bytes int, priorities ...priority.Priority) (all []*flow.Waiter, granted func() []int) {
	var got []int
	for i, p := range priorities {
		all = append(all, &flow.Waiter{Priority: p, Bytes: bytes, Granted: func(bool) { got = append(got, i) }})
	}
	return all, func() (now []int) {
		now, got = got, nil
		return now
	}
}
