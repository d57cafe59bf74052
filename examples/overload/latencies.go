package main

import (
	"slices"
	"time"
)

// latencies are durations of calls.
type latencies []time.Duration

// sorted returns l in ascending order.
func sorted(l latencies) latencies {
	slices.Sort(l)
	return l
}

// percentile returns the time that p of 100 calls did not exceed. It is 0 if there were no calls.
func (l latencies) percentile(p int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[(len(l)-1)*p/100]
}

// round returns d, rounded for readers.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= 100*time.Millisecond:
		return d.Round(10 * time.Millisecond)
	default:
		return d.Round(100 * time.Microsecond)
	}
}
