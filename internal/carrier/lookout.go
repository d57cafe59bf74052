package carrier

import (
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
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

// round looks at some Carriers, each of which knows its index.
type round struct {
	carriers []*Carrier
	timer    *time.Timer // calls lookAround
	runs     bool        // it does until it finds no Carrier
}

// every returns how often the Carrier is to be looked at. There are few different values: half of
// what the node itself needs, half of that, and so on, whatever peers ask for.
func (c *Carrier) every() time.Duration {
	every := min(c.grace(), c.WriteTimeout)
	if c.live.interval > 0 {
		every = min(every, c.PingInterval)
	}
	every /= looks
	for c.live.interval > 0 && every > c.live.interval/looks {
		every /= 2
	}
	return max(every, 1)
}

// add looks at c from now on, remove no longer.
func (l *Lookout) add(c *Carrier) {
	every := c.every()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rounds == nil {
		l.rounds = make(map[time.Duration]*round)
	}
	r := l.rounds[every]
	if r == nil {
		r = &round{runs: true}
		r.timer = time.AfterFunc(every, func() { l.lookAround(r, every) })
		l.rounds[every] = r // for ever: there are few
	}
	if !r.runs {
		r.runs = true
		r.timer.Reset(every)
	}
	c.live.index = len(r.carriers)
	r.carriers = append(r.carriers, c)
}

func (l *Lookout) remove(c *Carrier) {
	every := c.every()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rounds[every]
	last := len(r.carriers) - 1
	r.carriers[last].live.index = c.live.index
	r.carriers[c.live.index], r.carriers[last] = r.carriers[last], nil
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
	for _, c := range l.of(r) {
		if c.Away() {
			c.live.part.Tell(0) // what was arriving has gone with its Wire
			c.up.StillAway()
		} else if !guard.Run(c.Log, "wire", func() { c.look(c.Now()) }, "session", c.up) {
			c.End(&codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: it panicked"})
		}
	}
}

func (l *Lookout) lookAgain(r *round, every time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.runs = len(r.carriers) > 0; r.runs {
		r.timer.Reset(every)
	}
}

func (l *Lookout) of(r *round) []*Carrier {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(r.carriers)
}
