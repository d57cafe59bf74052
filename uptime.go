package asterisque

import "time"

// uptime tells the time of a node, which is counted from its birth: a call that has to remember a
// moment needs a third of the memory of a time.Time for it.
type uptime struct {
	born time.Time // fixed
}

// now returns how long the node has been there. It is positive, and does not jump.
func (u *uptime) now() time.Duration { return time.Since(u.born) + 1 }

// timeAt returns the time at which now returns d.
func (u *uptime) timeAt(d time.Duration) time.Time { return u.born.Add(d - 1) }
