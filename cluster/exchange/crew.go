package exchange

import "sync"

// crew is the goroutines of an exchange that no call and no listener waits for.
type crew struct {
	running sync.WaitGroup // one is added with mu held, and none once closed

	mu     sync.Mutex
	closed bool // guarded by mu
}

// begin runs f on a goroutine, and reports whether it does: after wait none begins.
func (c *crew) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(f) // ends when f does
	}
	return !c.closed
}

// wait waits for all.
func (c *crew) wait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}
