package call

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/piping"
)

const (
	// idleAfter is the idle time of a direction of a stream after which its spare credit is
	// returned.
	idleAfter = time.Second
	// idleCredit remains for longIdle searches if there are few streams, so that the next Blocks
	// need no round trip. Then it is returned as well: the peer may have a small budget.
	idleCredit = 64 << 10
	longIdle   = 10
	fewStreams = 32
)

// idleSearch searches the streams of a session for credit to return.
type idleSearch struct{ x *Calls }

// idleness records what a search has found of a stream.
type idleness struct {
	sent  uint64 // cost, as its pipe counts it
	looks int    // searches since sent has changed
}

// watchIdle schedules searches for idle streams, as long as one has credit to spare: other streams
// may need the peer's budget that it holds.
func (x *Calls) watchIdle() {
	if x.Table.watch() {
		idleSearch{x}.lookLater(nil)
	}
}

// lookLater schedules a search, which knows the streams that the previous one has seen.
func (s idleSearch) lookLater(seen map[*piping.End]idleness) {
	time.AfterFunc(idleAfter, func() { s.look(seen) })
}

// look returns the credit of streams that have sent nothing since the previous search.
func (s idleSearch) look(before map[*piping.End]idleness) {
	streams := s.x.Table.watched()
	seen := make(map[*piping.End]idleness)
	for _, e := range streams {
		was, ok := before[e]
		if !ok {
			was.sent = piping.Unlimited // not known to be idle
		}
		stays := uint64(idleCredit)
		if len(streams) > fewStreams || was.looks >= longIdle {
			stays = 0 // beyond the guaranteed credit
		}
		if sent, again := e.Idle(was.sent, stays); again && sent == was.sent {
			seen[e] = idleness{sent, was.looks + 1}
		} else if again {
			seen[e] = idleness{sent: sent}
		}
	}
	if s.x.Table.watchOn(len(seen) > 0) {
		s.lookLater(seen)
	}
}

// watch records that a search for idle streams is scheduled, and reports whether none was.
func (t *table) watch() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spare = true
	if t.watching || t.ended {
		return false
	}
	t.watching = true
	return true
}

// watched begins a search, and returns the pipes that carry Blocks.
func (t *table) watched() (all []*piping.End) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spare = false
	for i := range t.pipes {
		t.pipes[i].all(func(e endpoint) {
			if p := e.Pipe(); p != nil {
				all = append(all, (*piping.End)(p))
			}
		})
	}
	return all
}

// watchOn ends a search, and reports whether another one is due: more reports that it has found
// credit to spare.
func (t *table) watchOn(more bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watching = (more || t.spare) && !t.ended
	return t.watching
}

// DropLeft drops the untaken Blocks of ended streams that hold room in vain. It reports whether
// there were some.
func (x *Calls) DropLeft() bool {
	dropped, _ := x.out.terms.DropLeft()
	return dropped
}
