package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/piping"
)

const (
	// idleAfter is the idle time of a direction of a stream after which its spare credit is
	// returned.
	idleAfter = time.Second
	// idleCredit remains if there are few streams, so that the next Blocks need no round trip.
	idleCredit = 64 << 10
	fewStreams = 32
	// mostQueued waiting messages stop the return of credit: a peer that grants more and reads
	// nothing would add to them without a bound.
	mostQueued = 1024
)

// watchIdle schedules searches for idle streams, as long as one has credit to spare: other streams
// may need the peer's budget that it holds.
func (x *exchange) watchIdle() { x.watchIdleAfter(nil) }

// watchIdleAfter is watchIdle after a search that has recorded the sent bytes of streams that may
// be idle.
func (x *exchange) watchIdleAfter(seen map[*piping.End]uint64) {
	if x.table.watch() {
		time.AfterFunc(idleAfter, func() { x.lookForIdle(seen) })
	}
}

// lookForIdle returns the credit of streams that have sent nothing since the previous search.
func (x *exchange) lookForIdle(before map[*piping.End]uint64) {
	streams := x.table.watched()
	if x.outbound.Held().Messages >= mostQueued {
		x.watchIdleAfter(before)
		return
	}
	stays := uint64(idleCredit)
	if len(streams) > fewStreams {
		stays = x.terms.PeerEarly
	}
	seen := make(map[*piping.End]uint64)
	for _, e := range streams {
		last, ok := before[e]
		if !ok {
			last = piping.Unlimited // not known to be idle
		}
		if sent, again := e.Idle(last, stays); again {
			seen[e] = sent
		}
	}
	if len(seen) > 0 {
		x.watchIdleAfter(seen)
	}
}

// watch records that a search for idle streams is scheduled, and reports whether none was.
func (t *table) watch() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watching || t.ended {
		return false
	}
	t.watching = true
	return true
}

// watched records that no search is scheduled, and returns the pipes that carry Blocks.
func (t *table) watched() (all []*piping.End) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watching = false
	for i := range t.pipes {
		t.pipes[i].all(func(e endpoint) {
			if p := e.untyped(); p != nil {
				all = append(all, (*piping.End)(p))
			}
		})
	}
	return all
}
