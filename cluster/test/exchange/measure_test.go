package exchange_test

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/internal/test/race"
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
	if !race.Enabled { // which holds more
		require.Less(t, (after.Live-before.Live)/n, int64(most))
	}
	require.LessOrEqual(t, (after.Goroutines-before.Goroutines)/n, int64(mostGoroutines))
	for _, c := range all {
		require.Equal(t, "b", ask(t, c), "they still are good")
	}
}

// taking returns the number of received bytes of a stream.
var taking = asterisque.Stream[struct{}, []byte, []byte, int](8, "taking")

func takes(svc *asterisque.Service) *asterisque.Service {
	taking.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[[]byte, []byte]) (n int, err error) {
		for v, err := range p.All(ctx) {
			if err != nil {
				return n, err
			}
			n += len(v)
		}
		return n, nil
	})
	return svc
}

// TestMeasure_HowFastSessionsAre compares sessions through an exchange in a process of its own with
// direct ones, both over TCP, in alternating rounds. With -measure it prints the medians.
func TestMeasure_HowFastSessionsAre(t *testing.T) {
	rounds, blocks, calls := 1, 100, 100
	if *measure {
		rounds, blocks, calls = 15, 2000, 2000
	}
	x := startAlone(t, "tcp://127.0.0.1:0")
	join(t, agent.Config{Exchange: []string{x.url}, Name: "orders", ID: "b", Service: takes(service("b", nil))})
	node := asterisque.NewNode(asterisque.WithService(takes(service("b", nil))), asterisque.WithLogger(silent))
	t.Cleanup(func() { node.Close() })
	ways := map[string]asterisque.Caller{
		"direct": dialled(t, node), "relayed": callerOf(t, joined(t, x.url, "shop", "a"), "orders"),
	}
	streams, latencies := make(map[string][]float64), make(map[string][]time.Duration)
	for range rounds {
		for how, on := range ways {
			streams[how] = append(streams[how], streamed(t, on, blocks))
			latencies[how] = append(latencies[how], called(t, on, calls)...)
		}
	}
	for how := range ways {
		slices.Sort(streams[how])
		slices.Sort(latencies[how])
		n := len(latencies[how])
		t.Logf("%s: a stream of 32 KiB Blocks %.0f MB/s; a call %v, of a hundred the slowest %v", how,
			streams[how][rounds/2], latencies[how][n/2], latencies[how][n*99/100])
	}
}

// streamed sends a number of Blocks of 32 KiB, and returns the throughput in MB a second.
func streamed(t *testing.T, on asterisque.Caller, blocks int) float64 {
	block := make([]byte, 32<<10)
	begin := time.Now()
	call, err := taking.Open(t.Context(), on, struct{}{})
	require.NoError(t, err)
	for range blocks {
		require.NoError(t, call.Send(t.Context(), block))
	}
	require.NoError(t, call.CloseSend())
	n, err := call.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, blocks*len(block), n)
	return float64(n) / 1e6 / time.Since(begin).Seconds()
}

// called makes calls one after the other, and returns the duration of each.
func called(t *testing.T, on asterisque.Caller, calls int) (took []time.Duration) {
	for range calls {
		begin := time.Now()
		_, err := whoami.Call(t.Context(), on, struct{}{})
		require.NoError(t, err)
		took = append(took, time.Since(begin))
	}
	return took
}
