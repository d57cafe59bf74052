package priority_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/priority"
)

// rest is the memory that an empty queue may keep, together with other short-lived allocations.
const rest = 16 << 10

func all(f func(p priority.Priority)) {
	for n := int(priority.Min); n <= int(priority.Max); n++ {
		f(priority.Priority(n))
	}
}

func TestLines_MemoryWhenEmptied(t *testing.T) {
	for name, c := range map[string]struct {
		each  int // values of each priority
		empty func(l *priority.Lines[int32])
	}{
		"Pop": {30_000, func(l *priority.Lines[int32]) {
			for l.Len() > 0 {
				l.Pop()
			}
		}},
		"PopLast": {3000, func(l *priority.Lines[int32]) {
			for l.Len() > 3000 { // those of Max stay, and no other priority is above
				l.PopLast(priority.Max)
			}
			l.Filter(func(int32) bool { return false })
		}},
		"Filter": {3000, func(l *priority.Lines[int32]) { l.Filter(func(int32) bool { return false }) }},
		"Filter, one remains": {3000, func(l *priority.Lines[int32]) {
			n := 0
			l.Filter(func(int32) bool { n++; return n == 1000 })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, weightest.GrownAtMost(rest, func() any {
				l := new(priority.Lines[int32])
				all(func(p priority.Priority) {
					for n := range c.each {
						l.Push(p, int32(n))
					}
				})
				c.empty(l)
				require.LessOrEqual(t, l.Len(), 1)
				return l
			}), rest)
		})
	}
}

func TestQueue_MemoryWhenEmptied(t *testing.T) {
	for name, empty := range map[string]func(q *priority.Queue[int], fs []*priority.Flow[int]){
		"Pop": func(q *priority.Queue[int], _ []*priority.Flow[int]) {
			for q.Len() > 0 {
				q.Pop()
			}
		},
		"Clear": func(q *priority.Queue[int], fs []*priority.Flow[int]) {
			for _, f := range fs {
				q.Clear(f, func(int) {})
			}
		},
		"Filter": func(q *priority.Queue[int], _ []*priority.Flow[int]) {
			q.Filter(func(*int) bool { return false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			grown := math.MaxInt
			for n := 0; n < 5 && grown > rest; n++ { // one-time allocations of the runtime
				grown = leftOf(t, empty)
			}
			require.LessOrEqual(t, grown, rest)
		})
	}
}

// leftOf returns the memory held by a queue that was large and has been emptied.
func leftOf(t *testing.T, empty func(q *priority.Queue[int], fs []*priority.Flow[int])) int {
	q := new(priority.Queue[int])
	var fs []*priority.Flow[int]
	all(func(p priority.Priority) {
		for range 4 {
			fs = append(fs, &priority.Flow[int]{Priority: p})
		}
	})
	before := weightest.Heap()
	for _, f := range fs {
		for n := range 1000 {
			q.Push(f, n, 1000)
		}
	}
	empty(q, fs)
	require.Zero(t, q.Len())
	grown := weightest.Heap() - before
	runtime.KeepAlive(q)
	runtime.KeepAlive(fs)
	return grown
}

// TestQueue_SteadyAllocatesNothing has one or more values wait, at few priorities.
func TestQueue_SteadyAllocatesNothing(t *testing.T) {
	for _, n := range []int{1, 16} {
		for _, levels := range []int{1, 2, 7} {
			var l priority.Lines[*int]
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				for i := range n {
					l.Push(priority.Priority(i%levels), nil)
				}
				for range n {
					l.Pop()
				}
			}), "Lines: %d values from Normal", n)
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				for i := range n {
					l.Push(priority.Priority(1+i%levels), nil)
				}
				for range n {
					l.Pop()
				}
			}), "Lines: %d values above it", n)
			var q priority.Queue[large]
			fs := make([]priority.Flow[large], levels)
			for i := range fs {
				fs[i].Priority = priority.Priority(i)
			}
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				for i := range n {
					q.Push(&fs[i%levels], large{}, 1000)
				}
				for range n {
					q.Pop()
				}
			}), "Queue: %d values of %d flows", n, levels)
		}
	}
}
