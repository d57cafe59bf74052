package cluster

import "time"

// holdOffTime returns the delay before the next attempt after times attempts: 20 ms at first, a
// second at most.
func holdOffTime(times int) time.Duration {
	return min(20*time.Millisecond<<min(times, 10), time.Second)
}
