package asterisque

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/limits"
)

// TestGate_PlaceBetweenTurns has two calls leave at the same time, the second one while the queue
// is empty because the first one's turn is being taken: its place is not lost.
func TestGate_PlaceBetweenTurns(t *testing.T) {
	g := &gate{free: 2}
	// without workers: admitted calls stay in their queue
	s := &Session{shared: new(shared)}
	d := &s.calls
	d.plan, d.staff, d.ready = new(limits.Plan), new(staff), newJobQueue(taskToWorker)
	for range 5 {
		c := &served{port: port{x: &s.exchange}, handler: &handler{gate: g}, work: task{state: taskForKey}}
		d.passLocked(c)
	}
	require.Equal(t, 3, d.gated[g].jobs.len())

	p := g.next() // the first one leaves
	g.vacate()    // and meanwhile the second
	require.Equal(t, 1, g.free)
	ok, another := d.admit(g, p)
	require.True(t, ok)
	require.True(t, another, "the free place is the next one's")
	require.Zero(t, g.free)
	ok, another = d.admit(g, g.next())
	require.True(t, ok)
	require.False(t, another)
	require.Equal(t, 2, d.ready.len(), "as many as have left")
	require.Equal(t, 1, d.gated[g].jobs.len())
}

// TestGate_NestedCountsOnce has another call wait for the end of a nested call, which counts once
// at its gate.
func TestGate_NestedCountsOnce(t *testing.T) {
	g := new(gate)
	s := &Session{shared: new(shared)}
	d := &s.calls
	d.plan, d.staff, d.ready = new(limits.Plan), new(staff), newJobQueue(taskToWorker)
	d.room.owner, d.staff.nested.most = new(owner), 10
	c := &served{port: port{x: &s.exchange}, handler: &handler{gate: g}, work: task{state: taskForKey, nested: true}}
	require.False(t, d.passLocked(c))
	require.Equal(t, 1, g.urgent)
	d.lend(c)
	require.Equal(t, 1, g.urgent, "it was urgent before")
	require.Zero(t, d.room.urged)
}

// loan counts how often a worker was lent to it.
type loan int

func (l *loan) queue() {}
func (l *loan) lend()  { *l++ }

// TestGate_LendsForUrgent checks that calls with a place that wait get a lent worker while an
// urgent call waits behind them, whether they waited for the place or not.
func TestGate_LendsForUrgent(t *testing.T) {
	g := new(gate)
	var never, has loan
	require.True(t, g.waitsInside(&never))
	require.False(t, g.passed(&has, false))
	g.lend()
	require.Zero(t, never+has, "nobody is behind them")
	g.countUrgent(1)
	require.False(t, g.waitsInside(new(loan)), "it must not wait")
	g.lend()
	require.Equal(t, []loan{1, 1}, []loan{never, has})
	g.waitsNoMore(&never)
	g.lend()
	require.Equal(t, []loan{1, 2}, []loan{never, has})
	var urgent loan
	require.False(t, g.passed(&urgent, true), "the last one that was urgent")
	g.lend()
	require.Equal(t, []loan{1, 2, 0}, []loan{never, has, urgent})
}
