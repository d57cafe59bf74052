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

// memoryBudget bounds the memory that a node holds for all its peers together. Each session has
// limits of its own, but their sum may be too large. From half of the budget on, windows stop
// growing, and shrink to their guaranteed size. Above the budget, sessions and calls of each owner
// that holds more than its fair share are rejected. Above nine eighths no session begins. A peer
// that keeps to its grants is never cut off.
type memoryBudget struct {
	*limits.Tally
	owners *quotaOwners // fixed

	mu   sync.Mutex
	next time.Time // guarded by mu, as fair: time of the next computation of fair
	fair int       // share of an owner
}

// heldSession is the cost of an idle session.
const heldSession = 16 << 10

// fairFor is the validity of a fair share: computing it looks at all owners.
const fairFor = 100 * time.Millisecond

// crowdedFor is the advised delay for a peer that was rejected because of the budget.
const crowdedFor = time.Second

// refusesCall returns the reason to reject a call of w, or nil.
func (b *memoryBudget) refusesCall(w *quotaOwner) *Abort {
	if !b.Over() || w.tally.Held() <= b.fairShare() {
		return nil
	}
	return codec.OverloadedFor(crowdedFor, "the sessions of this peer hold more than their share of all that is held here: see Limits.Budget")
}

// refusesSession returns the reason to reject a session of a peer, or nil. Owners below their share
// may exceed the budget by an eighth, so that large owners do not lock them out.
func (b *memoryBudget) refusesSession(p *Peer) error {
	if !b.Over() || b.owners.heldBy(p) <= b.fairShare() && b.Held() <= b.Most()+b.Most()/8 {
		return nil
	}
	return codec.OverloadedFor(crowdedFor, "too much memory is held here: see Limits.Budget")
}

// fairShare returns the share of an owner such that seven eighths of the budget are enough for all:
// owners below it are not restricted (max-min fairness).
func (b *memoryBudget) fairShare() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); !now.Before(b.next) {
		b.next, b.fair = now.Add(fairFor), fairShare(b.owners.held(), b.Most()-b.Most()/8)
	}
	return b.fair
}

// fairShare returns the share of each such that the total is at most total.
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

// unknownMemory stands for the memory of a machine that does not report it.
const unknownMemory = 4 << 30
