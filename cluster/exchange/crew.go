package exchange

import "sync"

// goroutineGroup tracks the goroutines of an exchange that do not belong to a call or a listener.
type goroutineGroup struct {
	running sync.WaitGroup // incremented with mu held, and never once closed

	mu     sync.Mutex
	closed bool // guarded by mu
}

// begin runs f on a goroutine. After wait it does not, and returns false.
func (c *goroutineGroup) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(f) // ends when f does
	}
	return !c.closed
}

// wait rejects further goroutines, and waits for the running ones.
func (c *goroutineGroup) wait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}
