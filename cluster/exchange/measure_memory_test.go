package exchange_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
)

var (
	measure = flag.Bool("measure", false, "measure what relayed sessions cost, and how fast they are")
	heapTo  = flag.String("heap", "", "with -measure, write a profile of the heap of the exchange to a `FILE`")
)

// TestMeasure_WhatAnIdleSessionCosts runs an exchange in a process of its own, and two nodes with
// many sessions in this one.
func TestMeasure_WhatAnIdleSessionCosts(t *testing.T) {
	const most, mostGoroutines = 40 << 10, 4
	sessions := 100
	if *measure {
		sessions = 1000
	}
	x := startAlone(t, "tcp://127.0.0.1:0")
	join(t, agent.Config{Exchange: []string{x.url}, Name: "orders", ID: "b", Sessions: 2000})
	a := join(t, agent.Config{Exchange: []string{x.url}, Name: "shop", ID: "a", Sessions: 2000})
	var all []asterisque.Caller
	begin := func(n int) {
		for range n {
			p := callerOf(t, a, "orders")
			require.Equal(t, "b", ask(t, p))
			all = append(all, p)
		}
	}
	begin(10) // the fixed costs
	before := x.costs(t, "")
	begin(sessions)
	after := x.costs(t, *heapTo)
	n := after.Sessions - before.Sessions
	require.EqualValues(t, sessions, n)
	t.Logf("%d idle relayed sessions: each %d bytes of objects and stacks, %d of RSS, %.2f goroutines; the exchange before: %+v; after: %+v",
		n, (after.Live-before.Live)/n, (after.RSS-before.RSS)/n, float64(after.Goroutines-before.Goroutines)/float64(n), before, after)
	require.Less(t, (after.Live-before.Live)/n, int64(most))
	require.LessOrEqual(t, (after.Goroutines-before.Goroutines)/n, int64(mostGoroutines))
	for _, c := range all {
		require.Equal(t, "b", ask(t, c), "they still are good")
	}
}
