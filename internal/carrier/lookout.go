package carrier

import (
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// looks is how often a Carrier is looked at in its interval.
const looks = 8

// Lookout keeps time for the Carriers of a node: from time to time it looks at each. Those that are
// looked at equally often share a timer. What a peer asks for makes its own Carrier looked at more
// often, and no other.
type Lookout struct {
	mu sync.Mutex
	// by how often they look; guarded by mu, like the Carriers of each and their indices
	rounds map[time.Duration]*round
}

// watched is a Carrier, as the Lookout sees it.
type watched interface {
	// every returns how often it is to be looked at, which is always the same.
	every() time.Duration

	// lookAt looks at it. stood is for how long this process has not run since its first look, as
	// far as looks show; late says that it has not run just now, so that nothing is to be judged
	// before what has come meanwhile is read.
	lookAt(stood time.Duration, late bool)

	// clock tells the time of the node.
	clock() time.Duration

	// index is where it stands in its round. It is guarded by the lock of the Lookout.
	index() *int32
}

// round looks at some Carriers, each of which knows its index.
type round struct {
	carriers []watched
	timer    *time.Timer // calls lookAround
	runs     bool        // it does until it finds no Carrier

	last, stood time.Duration // the last look, and for how long the process has not run before it
}

// add lets c be looked at from now on.
func (l *Lookout) add(c watched) {
	every := c.every()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rounds == nil {
		l.rounds = make(map[time.Duration]*round)
	}
	r := l.rounds[every]
	if r == nil {
		r = &round{runs: true, last: c.clock()}
		r.timer = time.AfterFunc(every, func() { l.lookAround(r, every) })
		l.rounds[every] = r // for ever: there are few
	}
	if !r.runs {
		r.runs, r.last = true, c.clock()
		r.timer.Reset(every)
	}
	*c.index() = int32(len(r.carriers))
	r.carriers = append(r.carriers, c)
}

// remove lets c be looked at no longer.
func (l *Lookout) remove(c watched) {
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
func (l *Lookout) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rounds {
		r.timer.Stop()
	}
}

// lookAround looks at all Carriers of r, and does so again as long as there are any.
func (l *Lookout) lookAround(r *round, every time.Duration) {
	defer l.lookAgain(r, every) // whatever a Wire does that is asked
	list, stood, late := l.of(r, every)
	for _, c := range list {
		c.lookAt(stood, late)
	}
}

// lookAgain lets r be looked at once more after every, unless it has no Carriers.
func (l *Lookout) lookAgain(r *round, every time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.runs = len(r.carriers) > 0; r.runs {
		r.timer.Reset(every)
	}
}

// of returns the Carriers of r, and what has become of the time since the last look.
func (l *Lookout) of(r *round, every time.Duration) (list []watched, stood time.Duration, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(r.carriers) > 0 {
		now := r.carriers[0].clock()
		if late = wait.Late(now-r.last, every); late {
			r.stood += now - r.last - every
		}
		r.last = now
	}
	return slices.Clone(r.carriers), r.stood, late
}
