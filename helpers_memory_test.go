package asterisque_test

import (
	"runtime"
	"sync"

	"github.com/asterisque-go/asterisque/internal/weightest"
)

// stacks returns the bytes of goroutines' stacks.
func stacks() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.StackInuse)
}

// goroutine returns the bytes of heap that a goroutine costs while it waits for a channel, its
// stack apart.
func goroutine() int {
	const n = 10_000
	var wg sync.WaitGroup
	stop, before := make(chan struct{}), weightest.Heap()
	for range n {
		wg.Go(func() { <-stop })
	}
	each := (weightest.Heap() - before) / n
	close(stop)
	wg.Wait()
	return each
}

// heldSince returns by how many bytes the heap has grown since before. What is held is held at each
// look, while a buffer that is about to be let go is not: so it looks again if that is beyond
// bound.
func heldSince(before, bound int) (grown int) {
	for range 10 {
		if grown = weightest.Heap() - before; grown <= bound {
			break
		}
	}
	return grown
}
