//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// callers make calls during the faults.
type callers struct {
	paths     []path             // these are fixed
	customers []*cluster.Cluster // nodes of one identity, that post
	last      context.Context    // when it ends, calls without an outcome stay without one

	mu  sync.Mutex
	all []*call // guarded by mu; the numbers of calls begin with 1
}

// path is a route of calls to the replicas.
type path struct {
	name string
	on   asterisque.Caller
}

// add numbers a call.
func (cs *callers) add(c *call) *call {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.all = append(cs.all, c)
	c.work.Call = int64(len(cs.all))
	return c
}

// list returns all calls up to now.
func (cs *callers) list() []*call {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.all[:len(cs.all):len(cs.all)]
}

// drawn returns a random call.
func (cs *callers) drawn(rng *rand.Rand, posted bool) *call {
	c := newCall()
	c.posted, c.again, c.single = posted, rng.IntN(4) == 0, rng.IntN(5) == 0
	switch rng.IntN(10) {
	case 0:
		c.work.Takes = upTo(rng, 2*lease)
	case 1, 2, 3:
		c.work.Takes = upTo(rng, lease/10)
	}
	return cs.add(c)
}

// makeCalls makes calls one after the other until ctx ends. It returns when the last one has ended.
func (cs *callers) makeCalls(ctx context.Context, rng *rand.Rand, pace time.Duration, posted bool) {
	for wait.HoldOff(ctx, upTo(rng, 2*pace)) {
		if c := cs.drawn(rng, posted); posted {
			cs.post(c, rng)
		} else {
			cs.carryOut(c, rng)
		}
	}
}

// verdicts is the number of times a caller gets the answer that the outcome is unknown before it
// accepts that: a paused replica may still write its answer.
const verdicts = 3

// carryOut repeats a call until its outcome is known.
func (cs *callers) carryOut(c *call, rng *rand.Rand) {
	told := 0
	for times := 0; wait.HoldOff(cs.last, holdOff(times, rng)); times++ {
		text, err := cs.attempt(c, rng)
		switch {
		case err == nil:
			c.end(answered, text)
			cs.askAgain(c, rng)
			return
		case times == 0 && c.single && asterisque.Repeatable(err):
			c.end(notRun, "")
			return
		case !isPassing(err):
			c.end(odd, err.Error())
			return
		case isVerdict(err):
			if told++; told >= verdicts && !c.again {
				c.end(mayHaveRun, "")
				return
			}
		}
	}
}

// holdOff returns the delay of a caller before a retry.
func holdOff(times int, rng *rand.Rand) time.Duration {
	if times == 0 {
		return 0
	}
	return 10*time.Millisecond + upTo(rng, 20*time.Millisecond<<min(times, 4))
}

// attempt makes a call once, on a random path. Some callers have a short timeout.
func (cs *callers) attempt(c *call, rng *rand.Rand) (text string, err error) {
	p, ctx, how := cs.paths[rng.IntN(len(cs.paths))], cs.last, "makes it"
	if rng.IntN(4) == 0 {
		patience := 10*time.Millisecond + upTo(rng, lease/2)
		impatient, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx, how = impatient, fmt.Sprintf("makes it for %v", patience.Round(time.Millisecond))
	}
	return c.attempt(ctx, how, p)
}

// askAgain repeats some answered calls: a call has only one answer. Calls that may run again are
// excluded, since the replica that ran them may have lost JetStream at the end.
func (cs *callers) askAgain(c *call, rng *rand.Rand) {
	if c.again || rng.IntN(5) > 0 {
		return
	}
	if text, err := cs.attempt(c, rng); err == nil {
		c.compare(text)
	} else if !isPassing(err) {
		c.end(odd, "once more: "+err.Error())
	}
}
