package classicwire

import (
	"sync"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

const (
	// the ids of pipes of the accepting side begin here; those of the connecting side at 0, which
	// no pipe has
	serverHalf = 0x8000
	// each side keeps this id of its half free, for probes of the peer
	probe = 0x7fff

	// MaxPipes is the maximum number of concurrently open calls of one side.
	MaxPipes = probe - 1
)

// waiting is how many aborted ids wait for a sign of the peer before this side probes it.
const waiting = 1024

// pipeTable maps classic pipe ids to those of the session. Ids of the session grow forever; classic
// ones are reused. It locks itself.
type pipeTable struct {
	half uint16 // of the ids of this side; fixed

	mu        sync.Mutex
	ids       map[uint64]uint16    // guarded by mu, as all below; by pipe of the session
	pipes     map[uint16]classicID // by id
	kept      map[uint16]struct{}  // used ids with a pipe that the peer still keeps; nil without
	fresh     uint16               // the next id, without its half, that this side has never used
	free      fifo.Queue[uint16]   // used ids, the longest unused first
	aborted   fifo.Queue[closedID] // used ids that a late message of the peer may still have
	abortions uint64               // how many were ever put into aborted
	returned  uint64               // how many of those were removed
	last      uint64               // the session's id of the latest pipe that this side has opened
	next      uint64               // the session's id of the next pipe that the peer opens
	// the highest id in its half, without that, that the peer has opened
	seen   uint16
	probes fifo.Queue[closeProbe] // on their way
}

// classicID is the entry of a pipe in the table.
type classicID struct {
	pipe  uint64 // its id in the session
	own   bool   // this side has opened it
	ended bool   // the peer sends no more Blocks
}

// closedID is an id that this side closed. The peer knows that when it closes a pipe that was
// opened later.
type closedID struct {
	id    uint16
	after uint64 // the session's id of the latest pipe that was opened before
}

// closeProbe is a probe that the peer will answer.
type closeProbe struct {
	ping      uint64 // number of the Ping it stands for
	pinged    bool   // there was one
	abortions uint64 // earlier aborts are known to the peer when it answers
}

// init prepares the table of the accepting side, or of the connecting one.
func (t *pipeTable) init(server bool) {
	t.ids, t.pipes = map[uint64]uint16{}, map[uint16]classicID{}
	t.fresh, t.next = 1, 1
	if server {
		t.half, t.fresh, t.next = serverHalf, 0, 0
	}
}

// open returns an id for a pipe that this side opens. It reports false when all are in use. kept
// reports that the peer still has an earlier pipe with this id, and needs a Close for that first.
func (t *pipeTable) open(pipe uint64) (id uint16, ok, kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok = t.unusedLocked()
	if !ok {
		return 0, false, false
	}
	t.putLocked(id, classicID{pipe: pipe, own: true})
	t.last = pipe
	_, kept = t.kept[id]
	delete(t.kept, id)
	return id, true, kept
}

// cancel undoes an open: the peer never gets the Open.
func (t *pipeTable) cancel(pipe uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok := t.ids[pipe]; ok {
		t.removeLocked(id, t.pipes[id])
		t.free.Push(id)
	}
}

// short reports whether it is time to probe the peer, so that there may be more ids.
func (t *pipeTable) short() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.aborted.Len() > 0 && t.probes.Len() == 0
}

// unusedLocked returns an id of this side that no pipe has. Peers may use some ids of this side.
func (t *pipeTable) unusedLocked() (id uint16, ok bool) {
	for ; t.fresh < probe; t.fresh++ {
		if id := t.half | t.fresh; !t.hasLocked(id) {
			t.fresh++
			return id, true
		}
		t.free.Push(t.half | t.fresh)
	}
	for range t.free.Len() {
		id := t.free.Pop()
		if !t.hasLocked(id) {
			return id, true
		}
		t.free.Push(id)
	}
	return 0, false
}

func (t *pipeTable) hasLocked(id uint16) bool {
	_, ok := t.pipes[id]
	return ok
}

func (t *pipeTable) putLocked(id uint16, c classicID) {
	t.pipes[id] = c
	t.ids[c.pipe] = id
}

// accept returns the session's id for a pipe that the peer opens. It reports false if the id is not
// free.
func (t *pipeTable) accept(id uint16) (pipe uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hasLocked(id) || id == t.half|probe {
		return 0, false
	}
	pipe = t.next
	t.next += 2
	t.putLocked(id, classicID{pipe: pipe})
	if id&serverHalf != t.half {
		t.seen = max(t.seen, id&^serverHalf)
	}
	return pipe, true
}

// id returns the id of a pipe of the session. It reports false if the pipe is over.
func (t *pipeTable) id(pipe uint64) (id uint16, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok = t.ids[pipe]
	return id, ok
}

// block returns the pipe for a Block of the peer, if a pipe accepts it. late reports that the pipe
// is over. end marks the last Block.
func (t *pipeTable) block(id uint16, end bool) (pipe uint64, ok, late bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.pipes[id]
	if !ok {
		return 0, false, t.usedLocked(id)
	}
	if c.ended {
		return 0, false, true
	}
	c.ended = end
	t.pipes[id] = c
	return c.pipe, true, false
}

// usedLocked reports whether the id was ever used.
func (t *pipeTable) usedLocked(id uint16) bool {
	if id&serverHalf == t.half {
		return id&^serverHalf < t.fresh
	}
	return id&^serverHalf <= t.seen
}

// closed ends the pipe that the peer has closed, if there is one. kept reports that the peer still
// has it.
func (t *pipeTable) closed(id uint16, kept bool) (pipe uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.pipes[id]
	if !ok {
		return 0, false
	}
	t.removeLocked(id, c)
	if c.own {
		t.free.Push(id)
		if kept {
			t.keptLocked(id)
		}
		for t.aborted.Len() > 0 && t.aborted.Peek().after < c.pipe {
			t.returnLocked()
		}
	}
	return c.pipe, true
}

// close ends a pipe that this side closes. ask reports that it is time to probe the peer, so that
// ids do not run out.
func (t *pipeTable) close(pipe uint64) (id uint16, ok, ask bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok = t.ids[pipe]
	if !ok {
		return 0, false, false
	}
	c := t.pipes[id]
	t.removeLocked(id, c)
	if c.own {
		t.aborted.Push(closedID{id, t.last})
		t.abortions++
		ask = t.aborted.Len() >= waiting && t.probes.Len() == 0
	}
	return id, true, ask
}

func (t *pipeTable) keptLocked(id uint16) {
	if t.kept == nil {
		t.kept = map[uint16]struct{}{}
	}
	t.kept[id] = struct{}{}
}

func (t *pipeTable) removeLocked(id uint16, c classicID) {
	delete(t.pipes, id)
	delete(t.ids, c.pipe)
}

// returnLocked frees the oldest aborted id.
func (t *pipeTable) returnLocked() {
	t.free.Push(t.aborted.Pop().id)
	t.returned++
}

// ask records a probe, for a Ping or for this table, and returns its id.
func (t *pipeTable) ask(ping uint64, pinged bool) (id uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.probes.Push(closeProbe{ping, pinged, t.abortions})
	return t.half | probe
}

// answer returns the Ping that the peer has answered, if the probe was for one, by closing a pipe
// that never existed.
func (t *pipeTable) answer() (ping uint64, pinged bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.probes.Len() == 0 {
		return 0, false // no probe is open
	}
	q := t.probes.Pop()
	for t.returned < q.abortions {
		t.returnLocked()
	}
	return q.ping, q.pinged
}

// accepted returns the ids of the pipes that the peer has opened.
func (t *pipeTable) accepted() (ids []uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, c := range t.pipes {
		if !c.own {
			ids = append(ids, id)
		}
	}
	return ids
}
