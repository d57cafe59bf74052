package testkit

import (
	"runtime"
	"sync"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// Stacks returns the bytes of goroutines' stacks.
func Stacks() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.StackInuse)
}

// Goroutine returns the heap bytes of a goroutine that waits for a channel, without its stack and
// the memory that the runtime keeps for the next one. After it, the runtime keeps that memory for
// 10,000 goroutines.
func Goroutine() (each int) {
	const n = 10_000
	for range 2 {
		var wg sync.WaitGroup
		stop, before := make(chan struct{}), weightest.Heap()
		for range n {
			wg.Go(func() { <-stop })
		}
		each = (weightest.Heap() - before) / n
		close(stop)
		wg.Wait()
	}
	return each
}
