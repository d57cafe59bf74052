package call

import (
	"time"
)

// Clock is the clock of a node. It counts from the birth of the node: a duration needs a third of
// the memory of a time.Time.
type Clock struct {
	Born time.Time // fixed
}

// Now returns the age of the node. It is positive and monotonic.
func (u *Clock) Now() time.Duration { return time.Since(u.Born) + 1 }

// TimeAt returns the time at which now returns d.
func (u *Clock) TimeAt(d time.Duration) time.Time { return u.Born.Add(d - 1) }

const (
	// givenUpBurst is how many calls a peer may cancel at once; further ones may follow at one in
	// each givenUpEach. A canceled call costs this side the start of a handler, and the peer very
	// little.
	givenUpBurst = 10_000
	givenUpEach  = 100 * time.Microsecond

	givenUpPause = 5 * time.Millisecond // shortest pause that justifies a timer
)

// rateLimit limits a rate, by the generic cell rate algorithm of ITU-T I.371.
type rateLimit struct {
	// theoretical arrival time of the next event, in units of givenUpEach; it wraps
	due uint32
}

// pause counts one more event, and returns how long the reader has to wait for it.
func (p *rateLimit) pause(now time.Duration) time.Duration {
	at := uint32(now / givenUpEach)
	if ahead := int32(p.due - at); ahead < 0 || ahead > 2*givenUpBurst { // idle for long
		p.due = at
	}
	p.due++
	if d := time.Duration(int32(p.due-at)-givenUpBurst) * givenUpEach; d >= givenUpPause {
		return d
	}
	return 0
}
