package call

import (
	"cmp"
	"slices"
	"sync"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/priority"
)

// table finds the endpoint of a pipe by its id. Ids of this side and of the peer differ in their
// lowest bit, and the ids of each side increase.
//
// Its lock may be taken with that of the outbox held, and no lock is taken while it is held.
type table struct {
	odd uint8 // lowest bit of the ids of pipes that this side opens; fixed

	mu sync.Mutex
	// guarded by mu, as all below: the session has ended, and no pipe is added
	ended    bool
	watching bool // a search for idle streams is scheduled, or runs: see watchIdle
	spare    bool // a stream may have got spare credit since that search began
	// the Drain of this side: no pipe of the peer is added; nil until then
	announced *message.Drain
	pipes     [2]slotRing // by the lowest bit of their ids
	// Opens of the peer with missing parts; nil without any
	begun      map[uint64]priority.Priority
	refusing   int            // Opens of the peer that are being rejected
	drain      *message.Drain // Drain of the peer; nil until then
	lastOpened uint64         // highest id of this side that departed, +1; 0: none
	lastSeen   uint64         // highest id of the peer, +1; 0: none
	waits      *tableWaiters  // nil until a goroutine waits
}

// tableWaiters holds the channels of waiting goroutines.
type tableWaiters struct {
	// closed when no pipe is left, and no Open is being rejected; nil without a waiter
	empty chan struct{}
	none  chan struct{} // the same for the pipes that this side has opened
	drain chan struct{} // closed when either side drains the session; nil without a waiter
}

// depart adds e when its Open is about to leave.
func (t *table) depart(id uint64, e endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastOpened = id + 1
	if !t.ended {
		t.pipes[id&1].put(id, e)
	}
}

// check returns an error unless the peer may open a pipe with this id now, and records the id. The
// caller rejects the Open.
func (t *table) check(id uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkLocked(id); err != nil {
		return err
	}
	t.refusing++
	return nil
}

func (t *table) checkLocked(id uint64) error {
	switch {
	case id&1 == uint64(t.odd):
		return aborts.Violation("Open with pipe id %d, which is one of the other side's", id)
	case id < t.lastSeen:
		return aborts.Violation("Open with pipe id %d, which is not above the last, %d", id, t.lastSeen-1)
	}
	t.lastSeen = id + 1
	return nil
}

// begin is check for an Open that arrives in parts. The Open is in begun until one of accept,
// refuseBegun, endBegun, take and DrainHere removes it, which decides its outcome. begin returns
// false if the session accepts no more calls: then the Open is not in begun, and the caller rejects
// it.
func (t *table) begin(id uint64, p priority.Priority) (ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkLocked(id); err != nil {
		return false, err
	}
	if t.announced != nil || t.ended {
		t.refusing++
		return false, nil
	}
	if t.begun == nil {
		t.begun = make(map[uint64]priority.Priority)
	}
	t.begun[id] = p
	return true, nil
}

// refuseBegun removes an Open from begun, and reports whether it was there: then the caller rejects
// it.
func (t *table) refuseBegun(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.begun[id]; !ok {
		return false
	}
	delete(t.begun, id)
	t.refusing++
	return true
}

// endBegun removes an Open from begun that the peer has canceled.
func (t *table) endBegun(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.begun, id)
}

// refused records that a rejection has been put. Until then the table is not drained: an answer may
// wait for the outbound soft limit.
func (t *table) refused() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refusing--
	t.signalLocked()
}

// accept is check, unless the Open is begun, and adds the endpoint of the pipe. It returns false,
// and changes nothing, if the session accepts no more calls.
func (t *table) accept(id uint64, e endpoint, begun bool) (ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.announced != nil || t.ended {
		return false, nil
	}
	if begun {
		delete(t.begun, id)
	} else if err := t.checkLocked(id); err != nil {
		return false, err
	}
	t.pipes[id&1].put(id, e)
	return true, nil
}

// find returns the endpoint of a pipe, or nil if the pipe has ended. A pipe that was never opened
// is an error.
func (t *table) find(id uint64) (endpoint, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.pipes[id&1].get(id)
	if e == nil && !t.knownLocked(id) {
		return nil, aborts.Violation("message for pipe %d, which was never opened", id)
	}
	return e, nil
}

// made is find for a Close, which may arrive in parts only for a call that this side has made. It
// returns the priority of that call, and found == false if the call has ended.
func (t *table) made(id uint64) (p priority.Priority, found bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.pipes[id&1].get(id)
	switch {
	case id&1 != uint64(t.odd):
		return 0, false, aborts.Violation("a Close of pipe %d in parts, which the peer has opened", id)
	case e == nil && !t.knownLocked(id):
		return 0, false, aborts.Violation("Close for pipe %d, which was never opened", id)
	case e == nil:
		return 0, false, nil
	}
	return e.info().Priority, true, nil
}

// outer returns a call from this side as a parent of nested calls, or nil if it has ended.
func (t *table) outer(id uint64) *outboundParent {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.pipes[id&1].get(id); e != nil {
		return e.outer()
	}
	return nil
}

// take is find, and removes the endpoint.
func (t *table) take(id uint64) (endpoint, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.removeLocked(id)
	delete(t.begun, id)
	if e == nil && !t.knownLocked(id) {
		return nil, aborts.Violation("Close for pipe %d, which was never opened", id)
	}
	return e, nil
}

// remove removes a pipe, and reports whether it was in the table.
func (t *table) remove(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.removeLocked(id) != nil
}

// end empties the table for good and returns its endpoints: refused has the calls of this side that
// the peer has announced not to run.
func (t *table) end() (open, refused []endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.allLocked() {
		if t.refusedLocked(e.info()) {
			refused = append(refused, e)
		} else {
			open = append(open, e)
		}
	}
	t.pipes, t.begun, t.ended = [2]slotRing{}, nil, true
	t.signalLocked()
	return open, refused
}

// refusedLocked reports whether the Drain of the peer has rejected a call.
func (t *table) refusedLocked(i Info) bool {
	return t.drain != nil && i.Made && (t.drain.None || i.Pipe > t.drain.Last)
}

func (t *table) allLocked() []endpoint {
	all := make([]endpoint, 0, t.lenLocked())
	for i := range t.pipes {
		t.pipes[i].all(func(e endpoint) { all = append(all, e) })
	}
	return all
}

// DrainHere stops accepting pipes of the peer, and returns the Drain for the peer, the same each
// time. The caller rejects the Opens that were begun, which the Drain does not cover.
func (t *table) DrainHere() (d message.Drain, begun map[uint64]priority.Priority) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.announced == nil {
		t.announced = &message.Drain{None: t.lastSeen == 0}
		if t.lastSeen > 0 {
			t.announced.Last = t.lastSeen - 1
		}
		t.tellDrainLocked()
	}
	begun, t.begun = t.begun, nil
	t.refusing += len(begun)
	return *t.announced, begun
}

// drainThere records the Drain of the peer. Only the first one counts.
func (t *table) drainThere(d message.Drain) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drain == nil {
		t.drain = &d
		t.tellDrainLocked()
	}
}

// draining returns a channel that is closed when either side begins to drain the session.
func (t *table) draining() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drainsLocked() {
		return wait.Over
	}
	w := t.waitsLocked()
	if w.drain == nil {
		w.drain = make(chan struct{})
	}
	return w.drain
}

// drainsHere reports whether this side drains the session.
func (t *table) drainsHere() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.announced != nil
}

// drainsLocked reports whether either side drains the session.
func (t *table) drainsLocked() bool { return t.announced != nil || t.drain != nil }

// tellDrainLocked signals, once for each side, that it has begun to drain the session.
func (t *table) tellDrainLocked() {
	if w := t.waits; w != nil && w.drain != nil {
		close(w.drain)
		w.drain = nil
	}
}

// opened returns how many calls of this side have departed.
func (t *table) opened() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return (t.lastOpened + 1) / 2
}

// drained returns a channel that is closed when no pipe is left.
func (t *table) drained() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waitsLocked()
	if w.empty == nil {
		w.empty = make(chan struct{})
	}
	c := w.empty
	t.signalLocked()
	return c
}

// concluded reports whether a call of this side has ended.
func (t *table) concluded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return (t.lastOpened+1)/2 > uint64(t.pipes[t.odd].len())
}

// answered returns a channel that is closed when no pipe of this side is left.
func (t *table) answered() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waitsLocked()
	if w.none == nil {
		w.none = make(chan struct{})
	}
	c := w.none
	t.signalLocked()
	return c
}

// infos returns the fixed properties of each call, and the endpoints in the same order. Only their
// immutable state may be read.
func (t *table) infos() ([]Info, []endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	endpoints := t.allLocked()
	infos := make([]Info, len(endpoints))
	for i, e := range endpoints {
		infos[i] = e.info()
	}
	return infos, endpoints
}

// running lists the calls, in the order of their ids.
func (t *table) running() []Info {
	infos, endpoints := t.infos()
	for i, e := range endpoints {
		infos[i].Waiting, infos[i].Queued = waiting(e), e.queued()
	}
	slices.SortFunc(infos, func(a, b Info) int { return cmp.Compare(a.Pipe, b.Pipe) })
	return infos
}

func (t *table) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lenLocked()
}

func (t *table) lenLocked() int { return t.pipes[0].len() + t.pipes[1].len() }

func (t *table) knownLocked(id uint64) bool {
	if id&1 == uint64(t.odd) {
		return id < t.lastOpened
	}
	return id < t.lastSeen
}

func (t *table) removeLocked(id uint64) endpoint {
	e := t.pipes[id&1].remove(id)
	t.signalLocked()
	return e
}

// waitsLocked returns the channels of waiting goroutines, to add one.
func (t *table) waitsLocked() *tableWaiters {
	if t.waits == nil {
		t.waits = new(tableWaiters)
	}
	return t.waits
}

func (t *table) signalLocked() {
	w := t.waits
	if w == nil {
		return
	}
	if w.empty != nil && t.lenLocked()+t.refusing == 0 {
		close(w.empty)
		w.empty = nil
	}
	if w.none != nil && t.pipes[t.odd].len() == 0 {
		close(w.none)
		w.none = nil
	}
}
