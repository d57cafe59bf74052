package cluster

import (
	"context"
	"time"
)

// holdOff waits, and reports false if ctx ends before.
func holdOff(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// holdOffTime returns how long to wait before something is tried again that was tried so many
// times: 20 ms at first, a second at most.
func holdOffTime(times int) time.Duration {
	return min(20*time.Millisecond<<min(times, 10), time.Second)
}
