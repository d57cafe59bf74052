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
