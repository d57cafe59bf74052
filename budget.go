package asterisque

import (
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// budget bounds what a node holds for all its peers together. Each session keeps to its own limits;
// what many of them hold is another matter. From half of the budget on windows grow no more, and
// what they have grown by is taken back. Above it sessions and calls are refused of the owners who
// hold most: of each who holds more than its fair share. Above nine eighths no session begins.
// Nobody is cut off who keeps to what was promised.
type budget struct {
	*limits.Tally
	owners *owners // fixed

	mu   sync.Mutex
	next time.Time // guarded by mu, as fair: when the fair share is found out anew
	fair int       // what an owner may hold
}

// heldSession is what an idle session counts for.
const heldSession = 16 << 10

// fairFor is how long a fair share is good for: finding it out looks at all owners.
const fairFor = 100 * time.Millisecond

// crowdedFor is when a peer may come back that was refused for the budget.
const crowdedFor = time.Second

// refusesCall returns why a call of w is refused, or nil.
func (b *budget) refusesCall(w *owner) *Abort {
	if !b.Over() || w.tally.Held() <= b.fairShare() {
		return nil
	}
	return codec.OverloadedFor(crowdedFor, "the sessions of this peer hold more than their share of all that is held here: see Limits.Budget")
}

// refusesSession returns why no session begins of a peer, or nil. Whoever holds little has some
// more room than there is, so that nobody is kept out by what others hold.
func (b *budget) refusesSession(p *Peer) error {
	if !b.Over() || b.owners.heldBy(p) <= b.fairShare() && b.Held() <= b.Most()+b.Most()/8 {
		return nil
	}
	return codec.OverloadedFor(crowdedFor, "too much is held here for others: see Limits.Budget")
}

// fairShare returns how much an owner may hold so that seven eighths of the budget are enough for
// all: who holds less is not touched (max-min fairness).
func (b *budget) fairShare() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); !now.Before(b.next) {
		b.next, b.fair = now.Add(fairFor), fairShare(b.owners.held(), b.Most()-b.Most()/8)
	}
	return b.fair
}

// fairShare returns how much each may have so that all together have no more than total.
func fairShare(held []int, total int) int {
	slices.Sort(held)
	for i, h := range held {
		share := total / (len(held) - i)
		if h > share {
			return share
		}
		total -= h
	}
	return math.MaxInt
}

// defaultBudget returns a quarter of the memory that the program may use, as far as that is known.
func defaultBudget() int {
	most := debug.SetMemoryLimit(-1) // GOMEMLIMIT, if it is set
	if machine := machineMemory(); most == math.MaxInt64 || machine > 0 && machine < most {
		most = machine
	}
	if most <= 0 {
		most = unknownMemory
	}
	return int(min(most/4, math.MaxInt))
}

// unknownMemory stands for the memory of a machine that does not tell.
const unknownMemory = 4 << 30
