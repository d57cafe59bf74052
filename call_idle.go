package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/piping"
)

const (
	// idleAfter is for how long nothing is sent in a direction of a stream before the credit goes
	// back that it has no use for.
	idleAfter = time.Second
	// idleCredit stays where there are few streams, so that the next Blocks need no round trip.
	idleCredit = 64 << 10
	fewStreams = 32
	// mostQueued messages that wait to be sent let no credit go back: a peer that grants more and
	// reads nothing would add to them for ever.
	mostQueued = 1024
)

// watchIdle has streams looked for that are idle, soon and then again while one has credit to
// spare: what they hold of the peer's room others may need.
func (x *exchange) watchIdle() { x.watchIdleAfter(nil) }

// watchIdleAfter is watchIdle after a look that has seen how much had been sent by streams that may
// be idle.
func (x *exchange) watchIdleAfter(seen map[*piping.End]uint64) {
	if x.table.watch() {
		time.AfterFunc(idleAfter, func() { x.lookForIdle(seen) })
	}
}

// lookForIdle hands back the credit of streams that nothing was sent on since the look before.
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
			last = piping.Unlimited // in use, for all that is known
		}
		if sent, again := e.Idle(last, stays); again {
			seen[e] = sent
		}
	}
	if len(seen) > 0 {
		x.watchIdleAfter(seen)
	}
}

// watch notes that a look for idle streams is due, and reports whether none was.
func (t *table) watch() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watching || t.ended {
		return false
	}
	t.watching = true
	return true
}

// watched notes that no look is due, and returns the pipes that carry Blocks.
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
