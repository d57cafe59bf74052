package priority_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/priority"
)

// message is the value in the tested queues: its flow, and its place there.
type message struct{ flow, seq, size int }

// flows returns a flow for each priority.
func flows(priorities ...priority.Priority) []*priority.Flow[message] {
	var list []*priority.Flow[message]
	for _, p := range priorities {
		list = append(list, &priority.Flow[message]{Priority: p})
	}
	return list
}

func pop(t *testing.T, q *priority.Queue[message]) message {
	t.Helper()
	m, ok := q.Pop()
	require.True(t, ok, "a message waits")
	return m
}

func TestQueue_HighestFirst(t *testing.T) {
	var q priority.Queue[message]
	fs := flows(0, priority.Min, 3, priority.Max, -5)
	for i, f := range fs {
		q.Push(f, message{flow: i}, 10)
	}
	var order []int
	for q.Len() > 0 {
		order = append(order, pop(t, &q).flow)
	}
	require.Equal(t, []int{3, 2, 0, 4, 1}, order)
	_, ok := q.Pop()
	require.False(t, ok, "an empty queue has nothing")
}

func TestQueue_SharesByBytes(t *testing.T) {
	var q priority.Queue[message]
	fs := flows(0, 0, 0)
	sizes := []int{64 << 10, 1 << 10, 100}
	const total = 8 << 20
	for i, f := range fs {
		for n := 0; n < total; n += sizes[i] {
			q.Push(f, message{flow: i, size: sizes[i]}, sizes[i])
		}
	}
	var got [3]int
	for sum := 0; sum < total; {
		m := pop(t, &q)
		got[m.flow] += m.size
		sum += m.size
	}
	for i, n := range got {
		require.InDelta(t, total/3, n, 64<<10, "flow %d with messages of %d bytes", i, sizes[i])
	}
}

func TestGuard_Share(t *testing.T) {
	for _, share := range []float64{0, 0.05, 0.25} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			var q priority.Queue[message]
			q.Guard(share)
			fs := flows(10, 0, -10)
			for i, f := range fs {
				for range 10_000 {
					q.Push(f, message{flow: i, size: 1000}, 1000)
				}
			}
			var got [3]float64
			for range 8000 {
				got[pop(t, &q).flow]++
			}
			require.InDelta(t, 8000*share, got[1]+got[2], 20)
			require.InDelta(t, got[1], got[2], 20, "the levels below the highest take turns")
		})
	}
}

func TestClear_OneFlow(t *testing.T) {
	var q priority.Queue[message]
	fs := flows(0, 0)
	for i := range 3 {
		q.Push(fs[0], message{flow: 0, seq: i}, 1)
		q.Push(fs[1], message{flow: 1, seq: i}, 1)
	}
	var dropped []int
	q.Clear(fs[0], func(m message) { dropped = append(dropped, m.seq) })
	require.Equal(t, []int{0, 1, 2}, dropped)
	require.Equal(t, 3, q.Len())
	q.Push(fs[0], message{flow: 0, seq: 9}, 1)
	var left []message
	for q.Len() > 0 {
		left = append(left, pop(t, &q))
	}
	require.ElementsMatch(t, []message{{1, 0, 0}, {1, 1, 0}, {1, 2, 0}, {0, 9, 0}}, left)
}

// TestQueue_MatchesModel drives a queue with random steps. No message is lost, duplicated or
// overtaken within its flow. Without a guard, no message is sent before one of a higher priority.
func TestQueue_MatchesModel(t *testing.T) {
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var q priority.Queue[message]
		strict := seed%2 == 0
		if !strict {
			q.Guard(0.2)
		}
		fs := make([]*priority.Flow[message], 20)
		next := make([]int, len(fs)) // seq of the next message pushed
		model := make([][]message, len(fs))
		for i := range fs {
			fs[i] = &priority.Flow[message]{Priority: priority.Priority(rnd.IntN(256) - 128)}
		}
		for range 4000 {
			i := rnd.IntN(len(fs))
			switch n := rnd.IntN(100); {
			case n < 50:
				m := message{i, next[i], rnd.IntN(40_000)}
				next[i]++
				q.Push(fs[i], m, m.size)
				model[i] = append(model[i], m)
			case n < 52:
				dropped := 0
				q.Clear(fs[i], func(m message) {
					require.Equal(t, model[i][dropped], m)
					dropped++
				})
				require.Equal(t, len(model[i]), dropped)
				model[i] = nil
			default:
				most := rnd.IntN(40_000)
				m, ok := q.PopAtMost(most)
				if ok {
					require.LessOrEqual(t, m.size, most)
				} else if m, ok = q.Pop(); ok {
					require.Greater(t, m.size, most, "it was the next one, and is it still")
				} else {
					break
				}
				require.NotEmpty(t, model[m.flow], "a message leaves once")
				require.Equal(t, model[m.flow][0], m, "a flow is first in, first out")
				model[m.flow] = model[m.flow][1:]
				for j := range fs {
					if strict && len(model[j]) > 0 {
						require.LessOrEqual(t, fs[j].Priority, fs[m.flow].Priority, "nothing overtakes a higher priority")
					}
				}
			}
			total := 0
			for j := range fs {
				require.Equal(t, len(model[j]), fs[j].Len())
				total += len(model[j])
			}
			require.Equal(t, total, q.Len())
		}
	}
}

// BenchmarkQueue enqueues and dequeues with 100,000 messages over 1,000 pipes waiting.
func BenchmarkQueue(b *testing.B) {
	var q priority.Queue[message]
	fs := make([]*priority.Flow[message], 1000)
	for i := range fs {
		fs[i] = &priority.Flow[message]{Priority: priority.Priority(i % 7)}
	}
	for i := range 100_000 {
		q.Push(fs[i%1000], message{}, 100)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.Push(fs[i%1000], message{}, 100)
		q.Pop()
	}
}

// TestQueue_LargeMessagesShare has many flows with large messages, of which one is sent at a time,
// and many flows with small messages.
func TestQueue_LargeMessagesShare(t *testing.T) {
	const large, small, most = 60, 40, 16 << 10
	var q priority.Queue[message]
	var fs []*priority.Flow[message]
	for i := range large + small {
		fs = append(fs, &priority.Flow[message]{})
		for range 20 {
			if i < large {
				q.Push(fs[i], message{flow: i}, 60_000)
			} else {
				for range 15 {
					q.Push(fs[i], message{flow: i}, 4000)
				}
			}
		}
	}
	got := make([]int, len(fs))
	for sum := 0; sum < 30<<20; {
		q.Take(most, func(m *message, size int) int {
			n := min(size, most)
			got[m.flow] += n
			sum += n
			return n
		})
	}
	for i, n := range got {
		require.InDelta(t, 30<<20/(large+small), n, 120_000, "flow %d", i)
	}
}
