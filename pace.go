package asterisque

import "time"

const (
	// givenUpBurst is how many calls a peer may give up at once, and then one each givenUpEach. One
	// costs this side a handler that begins, and the peer next to nothing.
	givenUpBurst = 10_000
	givenUpEach  = 100 * time.Microsecond

	givenUpPause = 5 * time.Millisecond // the least one that is worth a timer
)

// pace tells what comes more often than it may: the generic cell rate algorithm of ITU-T I.371.
type pace struct {
	// when all that has come would have come at the rate, in units of givenUpEach; it wraps
	due uint32
}

// pause returns for how long whoever reads is to wait because one more has come.
func (p *pace) pause(now time.Duration) time.Duration {
	at := uint32(now / givenUpEach)
	if ahead := int32(p.due - at); ahead < 0 || ahead > 2*givenUpBurst { // long ago
		p.due = at
	}
	p.due++
	if d := time.Duration(int32(p.due-at)-givenUpBurst) * givenUpEach; d >= givenUpPause {
		return d
	}
	return 0
}
