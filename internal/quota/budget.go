package quota

import (
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// IdleSession is the memory of a session without calls, in bytes.
const IdleSession = 16 << 10

// fairFor is the validity of a fair share: computing it looks at all owners.
const fairFor = 100 * time.Millisecond

// crowdedFor is the advised delay for a peer that was rejected because of the budget.
const crowdedFor = time.Second

// RejectCall returns the error by which a call of w is rejected, or nil.
func (o *Owners) RejectCall(w *Owner) *codec.Abort {
	if !o.total.Over() || w.Tally.Held() <= o.fairShare() {
		return nil
	}
	return codec.OverloadedFor(crowdedFor, "the sessions of this peer hold more than their share of all that is held here: see Limits.Budget")
}

// RejectSession returns the error by which a session of the owner with this name is rejected, or
// nil. Owners below their share may exceed the budget by an eighth, so that large owners do not
// lock them out.
func (o *Owners) RejectSession(name Name) error {
	if !o.total.Over() || o.heldBy(name) <= o.fairShare() && o.total.Held() <= o.total.Most()+o.total.Most()/8 {
		return nil
	}
	return codec.OverloadedFor(crowdedFor, "too much memory is held here: see Limits.Budget")
}

// fairShare returns the share of an owner such that seven eighths of the budget are enough for all:
// owners below it are not restricted (max-min fairness).
func (o *Owners) fairShare() int {
	o.fairMu.Lock()
	defer o.fairMu.Unlock()
	if now := time.Now(); !now.Before(o.next) {
		o.next, o.fair = now.Add(fairFor), fairShare(o.held(), o.total.Most()-o.total.Most()/8)
	}
	return o.fair
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

// DefaultBudget returns a quarter of the memory that the program may use, as far as that is known.
func DefaultBudget() int {
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
