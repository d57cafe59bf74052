package cluster

import "time"

// holdOffTime returns how long to wait before something is tried again that was tried so many
// times: 20 ms at first, a second at most.
func holdOffTime(times int) time.Duration {
	return min(20*time.Millisecond<<min(times, 10), time.Second)
}
