package fifo_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

const (
	chunk = 4 << 10
	noise = 16 << 10 // other allocations meanwhile
)

// TestQueue_Memory bounds the memory of a Queue at each length, regardless of its history.
func TestQueue_Memory(t *testing.T) {
	const n = 100_000
	size := int(unsafe.Sizeof(value{}))
	var q fifo.Queue[value]
	before := weightest.Heap()
	holds := func(waits int) {
		t.Helper()
		require.Equal(t, waits, q.Len())
		most := waits*size*105/100 + 3*chunk + noise
		require.Less(t, weightest.HeldSince(before, most), most, "%d values", waits)
	}
	for waits := 0; waits <= n; waits += n / 10 {
		for q.Len() < waits {
			q.Push(value{})
		}
		holds(waits)
	}
	for q.Len() > n/2 {
		q.Pop()
	}
	holds(n / 2)
	for q.Len() > n/4 {
		q.PopLast()
	}
	holds(n / 4)
	i := 0
	q.Filter(func(*value) bool { i++; return i%10 == 0 })
	holds(n / 40)
	for range 2 * n {
		q.Push(value{})
		q.Pop()
	}
	holds(n / 40)
	for q.Len() > 10 {
		q.Pop()
	}
	holds(10)
	runtime.KeepAlive(&q)
}

func TestQueue_MemoryWhenEmpty(t *testing.T) {
	const queues, n = 200, 1000
	for name, empty := range map[string]func(q *fifo.Queue[value]){
		"Pop": func(q *fifo.Queue[value]) {
			for q.Len() > 0 {
				q.Pop()
			}
		},
		"PopLast": func(q *fifo.Queue[value]) {
			for q.Len() > 0 {
				q.PopLast()
			}
		},
		"both": func(q *fifo.Queue[value]) {
			for q.Len() > 0 {
				q.Pop()
				q.PopLast()
			}
		},
		"Filter": func(q *fifo.Queue[value]) { q.Filter(func(*value) bool { return false }) },
		"Reset":  func(q *fifo.Queue[value]) { q.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			most := chunk
			if name == "Reset" {
				most = 0
			}
			qs := make([]fifo.Queue[value], queues)
			before := weightest.Heap()
			for i := range qs {
				fill(&qs[i], n, func(int) value { return value{} })
				empty(&qs[i])
			}
			grown := weightest.HeldSince(before, queues*most+noise)
			require.LessOrEqual(t, grown, queues*most+noise)
			held := qs[0].Held() - int(unsafe.Sizeof(qs[0]))
			require.InDelta(t, grown, queues*held, queues*chunk/50+noise, "Held returns")
			runtime.KeepAlive(&qs)
		})
	}
	t.Run("new", func(t *testing.T) {
		require.LessOrEqual(t, unsafe.Sizeof(fifo.Queue[value]{}), uintptr(40))
	})
}

// TestQueue_SteadyAllocatesNothing includes the lengths at which chunks are added and removed.
func TestQueue_SteadyAllocatesNothing(t *testing.T) {
	for _, n := range []int{0, 1, 2, 16, 40, 62, 63, 64, 125, 126, 127, 10_000} {
		var q fifo.Queue[value]
		fill(&q, n, func(int) value { return value{} })
		steps := map[string]func(){
			"Pop":     func() { q.Push(value{}); q.Pop() },
			"PopLast": func() { q.Push(value{}); q.PopLast() },
			"few": func() {
				for range 5 {
					q.Push(value{})
				}
				for range 5 {
					q.Pop()
				}
			},
		}
		for name, step := range steps {
			require.Zero(t, testing.AllocsPerRun(10_000, step), "%s with %d values", name, n)
		}
	}
}
