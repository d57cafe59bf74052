package carrier

import (
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// looks is the number of looks at a Carrier in its interval.
const looks = 8

// KeepaliveScheduler is the timer of a node's Carriers: it looks at each of them from time to time.
// Carriers with the same interval share a timer. A short interval for one peer costs more looks at
// its own Carrier, and at no other.
type KeepaliveScheduler struct {
	mu sync.Mutex
	// by interval; guarded by mu, like the Carriers of each round and their indices
	rounds map[time.Duration]*keepaliveRound
}

// keepaliveClient is a Carrier, in the view of the KeepaliveScheduler.
type keepaliveClient interface {
	// every returns the interval of looks, which is constant.
	every() time.Duration

	// lookAt looks at the Carrier. now is the time by its clock, less the time without running, as
	// far as looks show. late reports that the process did not run just now: then the peer must not
	// be judged before the frames that came meanwhile are read.
	lookAt(now time.Duration, late bool)

	// clock returns the time of the node.
	clock() time.Duration

	// index is the position of the Carrier in its round. It is guarded by the lock of the
	// KeepaliveScheduler.
	index() *int32
}

// keepaliveRound is the Carriers with one interval. Each of them knows its index.
type keepaliveRound struct {
	carriers []keepaliveClient
	timer    *time.Timer // calls lookAround
	runs     bool        // set until the timer finds no Carrier

	last  time.Duration // time at which the timer was set, or the present look began
	stood time.Duration // time without running before last
	looks wait.Looks
}

// add starts the looks at c.
func (l *KeepaliveScheduler) add(c keepaliveClient) {
	every := c.every()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rounds == nil {
		l.rounds = make(map[time.Duration]*keepaliveRound)
	}
	r := l.rounds[every]
	if r == nil {
		r = &keepaliveRound{runs: true, last: c.clock()}
		r.timer = time.AfterFunc(every, func() { l.lookAround(r, every) })
		l.rounds[every] = r // kept for ever: there are few
	}
	if !r.runs {
		r.runs, r.last = true, c.clock()
		r.timer.Reset(every)
	}
	*c.index() = int32(len(r.carriers))
	r.carriers = append(r.carriers, c)
}

// remove ends the looks at c.
func (l *KeepaliveScheduler) remove(c keepaliveClient) {
	every := c.every()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rounds[every]
	last := len(r.carriers) - 1
	at := *c.index()
	*r.carriers[last].index() = at
	r.carriers[at], r.carriers[last] = r.carriers[last], nil
	r.carriers = r.carriers[:last]
}

// End is called when the last Carrier has been removed, and no other one will be added.
func (l *KeepaliveScheduler) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rounds {
		r.timer.Stop()
	}
}

// lookAround looks at all Carriers of r, and repeats while there are any.
func (l *KeepaliveScheduler) lookAround(r *keepaliveRound, every time.Duration) {
	defer l.lookAgain(r, every) // also if a Wire panics or ends the goroutine
	list, now, late := l.of(r, every)
	for _, c := range list {
		c.lookAt(now, late)
	}
}

// lookAgain schedules the next look at r after every, unless r has no Carriers.
func (l *KeepaliveScheduler) lookAgain(r *keepaliveRound, every time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.runs = len(r.carriers) > 0; r.runs {
		now := r.carriers[0].clock() // the process may have stood between two Carriers
		r.stood += max(now-r.last-every, 0)
		r.last = now
		r.timer.Reset(every)
	}
}

// of returns the Carriers of r, the time less that without running, and whether the process did not
// run just now.
func (l *KeepaliveScheduler) of(r *keepaliveRound, every time.Duration) (list []keepaliveClient, now time.Duration, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(r.carriers) > 0 {
		now = r.carriers[0].clock()
		passed := now - r.last
		if late = r.looks.Late(passed, every); wait.Late(passed, every) {
			r.stood += passed - every
		}
		r.last = now
	}
	return slices.Clone(r.carriers), now - r.stood, late
}
