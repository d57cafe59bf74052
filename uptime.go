package asterisque

import "time"

// uptime is the clock of a node. It counts from the birth of the node: a duration needs a third of
// the memory of a time.Time.
type uptime struct {
	born time.Time // fixed
}

// now returns the age of the node. It is positive and monotonic.
func (u *uptime) now() time.Duration { return time.Since(u.born) + 1 }

// timeAt returns the time at which now returns d.
func (u *uptime) timeAt(d time.Duration) time.Time { return u.born.Add(d - 1) }
