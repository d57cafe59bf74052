package testkit

import (
	"runtime"
	"sync"

	"github.com/asterisque-go/asterisque/internal/weightest"
)

// Stacks returns the bytes of goroutines' stacks.
func Stacks() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.StackInuse)
}

// Goroutine returns the bytes of heap that a goroutine costs while it waits for a channel, apart
// from its stack and from what the runtime keeps of it for the next one. It leaves that for 10,000
// of them.
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
