package asterisquetest

import (
	"sync"
	"testing"
)

// backgroundErrors reports errors to a test from goroutines that the test does not wait for.
type backgroundErrors struct {
	t testing.TB

	mu   sync.Mutex // held during a report, so that the test has not ended
	n    int        // guarded by mu, as over
	over bool
}

// newComplaints returns complaints that end with the test.
func newComplaints(t testing.TB) *backgroundErrors {
	c := &backgroundErrors{t: t}
	t.Cleanup(c.end)
	return c
}

func (c *backgroundErrors) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; !c.over && c.n <= mostTold {
		c.t.Errorf("asterisquetest: "+format, args...)
	}
}

func (c *backgroundErrors) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n > mostTold {
		c.t.Errorf("asterisquetest: and %d more of these", c.n-mostTold)
	}
	c.over = true
}
