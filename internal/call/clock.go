package call

import "time"

// Clock is the clock of a node. It counts from the birth of the node: a duration needs a third of
// the memory of a time.Time.
type Clock struct {
	Born time.Time // fixed
}

// Now returns the age of the node. It is positive and monotonic.
func (u *Clock) Now() time.Duration { return time.Since(u.Born) + 1 }

// TimeAt returns the time at which now returns d.
func (u *Clock) TimeAt(d time.Duration) time.Time { return u.Born.Add(d - 1) }
