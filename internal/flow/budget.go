package flow

import "sync"

// Class is the part of a [Budget] that room comes from.
type Class uint8

const (
	Prepaid Class = iota // no part: no window, or one that the credit for calls has paid
	Served               // guaranteed windows of running handlers
	Made                 // guaranteed windows of streams that this side has opened
	Nested               // windows of streams that this side has opened within calls
	Large                // rest of one large Block
	Elastic              // growth of windows; more streams, more large Blocks
	Initial              // extra credit that the peer has not used, out of the elastic room
	classes
)

// firstWindow is the size of a new window while there is elastic room.
const firstWindow = 64 << 10

// Window is the room that one direction of a stream holds in a [Budget]. Its owner guards it.
type Window struct {
	Base  uint32 // guaranteed bytes
	Extra uint32 // elastic bytes
	Class Class  // of Base
	fresh bool   // the application has taken nothing yet
}

// Bytes returns the size of the window.
func (w *Window) Bytes() uint64 { return uint64(w.Base) + uint64(w.Extra) }

// Budget is the room for the Block credit that one side grants, in classes with a minimum that no
// other class may take. No other code grants credit for Blocks. A Budget is safe for concurrent
// use.
//
// A Budget never calls back. A method that grants waiters returns them, and its caller passes them
// to [Grant] after it has released all locks.
type Budget struct {
	mu     sync.Mutex
	plan   *Plan        // guarded by mu, as all below; the Plan it points to never changes
	free   [Initial]int // bytes of each class; Elastic is negative after limits became smaller
	fresh  int          // part of the used elastic room: windows from which nothing was taken yet
	extra  *extraCredit // nil until the peer takes some
	queues *queues      // nil until a waiter waits
	tally  *Tally       // total memory, for Pressed; nil: never pressed; fixed
}

// queues are the waiting requests.
type queues struct {
	made, large Queue
	idle        Queue // of holders that take no Block: see Idle
}

// NewBudget returns a Budget that has granted nothing. Budgets may share p, which must not change
// any more.
func NewBudget(p *Plan) *Budget {
	b := &Budget{plan: p}
	for c := range Initial {
		b.free[c] = p.Minimum(c)
	}
	b.free[Elastic] -= p.Extra
	return b
}

// Plan returns the plan in force.
func (b *Budget) Plan() Plan {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.plan
}

// Heed limits windows to their guarantee while t is [Tally.Pressed], except for credit that was
// granted before. It is called before the first grant.
func (b *Budget) Heed(t *Tally) { b.tally = t }

// Resize changes the soft limit to the given bytes. The minimums of the other classes were
// announced to the peer, so only the elastic room changes: credit that was granted out of it stays
// valid, and new credit waits until it fits.
func (b *Budget) Resize(bytes int) []*Waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.plan.resized(bytes)
	b.free[Elastic] += p.Elastic - b.plan.Elastic
	b.plan = &p
	return b.grantLocked()
}

// Begin gives a handler its window when a worker has taken the call. Each worker has one.
func (b *Budget) Begin(w *Window) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free[Served] -= b.plan.Window
	w.Class, w.Base = Served, uint32(b.plan.Window)
	b.firstGrowthLocked(w)
}

// Lend is Begin for a stream with a guarantee from another source than this Budget. Its window may
// grow like any other.
func (b *Budget) Lend(w *Window) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.Class, w.Base = Prepaid, uint32(b.plan.Window)
	b.firstGrowthLocked(w)
}

// firstGrowthLocked enlarges a new window, by at most an eighth of the free elastic room. The
// application has taken nothing yet from fresh windows: see freshLocked.
func (b *Budget) firstGrowthLocked(w *Window) {
	w.fresh = true
	n := min(firstWindow-int(w.Base), b.free[Elastic]/8, b.freshLocked())
	if n > 0 && !b.tally.Pressed() {
		w.Extra = uint32(n)
		b.free[Elastic] -= n
		b.fresh += n
	}
}

// freshLocked returns how far all fresh windows together may still grow. With the extra credit they
// hold no more than an eighth of the room, so that streams that are never read leave room for the
// others.
func (b *Budget) freshLocked() int { return max(b.plan.Room/8-b.fresh-b.extraLeft(), 0) }

// Acquire takes the bytes of r from class, which is Made or Large, or queues r until they are free.
// For a window of a stream that this side opens it sets the bytes of r; [Budget.Opened] returns the
// window.
func (b *Budget) Acquire(class Class, r *Waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if class == Made {
		r.Bytes = b.plan.Window
	}
	if (b.queues == nil || b.queues.of(class).passes(r.Priority)) && b.takeLocked(class, r) {
		return true
	}
	b.queuesLocked().of(class).push(r)
	return false
}

// of returns the queue of a class.
func (q *queues) of(c Class) *Queue {
	if c == Made {
		return &q.made
	}
	return &q.large
}

// takeLocked takes the bytes of r from class, or from the elastic room: for a window while that has
// room for eight, and for a large Block if it has room for the whole.
func (b *Budget) takeLocked(class Class, r *Waiter) bool {
	n, elastic := r.Bytes, b.free[Elastic]
	switch {
	case class == Large && elastic >= n && !b.tally.Pressed():
		class = Elastic
	case b.free[class] >= n:
	case class == Made && elastic >= 8*n:
		class = Elastic
	default:
		return false
	}
	b.free[class] -= n
	r.source = class
	return true
}

// Source returns the class of the room that was granted.
func (r *Waiter) Source() Class { return r.source }

// Release returns bytes of a class.
func (b *Budget) Release(class Class, bytes int) []*Waiter {
	if bytes == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free[class] += bytes
	return b.grantLocked()
}

// Move moves bytes of the room for a large Block to the elastic room, if they fit there.
func (b *Budget) Move(bytes int) (ok bool, granted []*Waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free[Elastic] < bytes {
		return false, nil
	}
	b.free[Elastic] -= bytes
	b.free[Large] += bytes
	return true, b.grantLocked()
}

// Nest takes the window of a stream that this side opens within a call, or reports false if none is
// free. It never waits, because the enclosing calls would wait with it.
func (b *Budget) Nest(w *Window) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.plan.Window
	if b.free[Nested] < n {
		return false
	}
	b.free[Nested] -= n
	*w = Window{Base: uint32(n), Class: Nested}
	return true
}

// Opened stores in w the window that Acquire granted to r. It is larger than the guarantee while
// there is elastic room, like those of handlers, so that an answer of some KiB needs no further
// credit.
func (b *Budget) Opened(r *Waiter, w *Window) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*w = Window{Base: uint32(r.Bytes), Class: r.source}
	b.firstGrowthLocked(w)
}

// Withdraw ends the wait of r, and reports false if r has been granted before.
func (b *Budget) Withdraw(r *Waiter) (waited bool, granted []*Waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queues != nil && b.queues.idle.remove(r) {
		return true, nil
	}
	waited = b.queues != nil && (b.queues.made.remove(r) || b.queues.large.remove(r))
	if waited { // waiters behind it may fit now
		granted = b.grantLocked()
	}
	return waited, granted
}

// Took records that the application has taken bytes from the window for the first time.
func (b *Budget) Took(w *Window) []*Waiter {
	if !w.fresh {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takenLocked(w)
	return b.grantLocked()
}

// takenLocked records that w is not fresh any more.
func (b *Budget) takenLocked(w *Window) {
	if w.fresh {
		w.fresh = false
		b.fresh -= int(w.Extra)
	}
}

// Grow enlarges the window to want bytes, or as far as the elastic room allows. The growth of each
// window is at most four times the elastic room that is free afterwards (dynamic thresholds,
// Choudhury and Hahne 1998): one stream may use most of it, and many share it evenly. A window
// shrinks when other windows need the room, but not below least, the credit that the peer was
// granted.
func (b *Budget) Grow(w *Window, want, least uint64) []*Waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	share := max(b.free[Elastic]+int(w.Extra), 0) / 5 * 4
	if w.fresh {
		share = min(share, int(w.Extra)+b.freshLocked())
	}
	if b.tally.Pressed() {
		share = 0
	}
	extra := min(int(max(want, uint64(w.Base))-uint64(w.Base)), share)
	extra = max(extra, int(max(least, uint64(w.Base))-uint64(w.Base)))
	return b.setLocked(w, extra)
}

// Shrink releases the bytes of the window beyond least.
func (b *Budget) Shrink(w *Window, least uint64) []*Waiter {
	if w.Extra == 0 || w.Bytes() <= least {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.setLocked(w, int(max(least, uint64(w.Base))-uint64(w.Base)))
}

// setLocked sets the growth of a window.
func (b *Budget) setLocked(w *Window, extra int) []*Waiter {
	more := extra - int(w.Extra)
	w.Extra = uint32(extra)
	b.free[Elastic] -= more
	if w.fresh {
		b.fresh += more
	}
	if more >= 0 {
		return nil
	}
	return b.grantLocked()
}

// End releases all room that w holds.
func (b *Budget) End(w *Window) []*Waiter {
	if *w == (Window{}) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takenLocked(w)
	b.free[Elastic] += int(w.Extra)
	if w.Class != Prepaid {
		b.free[w.Class] += int(w.Base)
	}
	*w = Window{}
	return b.grantLocked()
}

// Idle registers r, of a holder of room for large Blocks whose application does not take its Block.
// [Budget.Evict] returns r when another waiter has to wait for that room, unless [Budget.Withdraw]
// comes before. Idle returns false, and does nothing, if one waits already.
func (b *Budget) Idle(r *Waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queuesLocked()
	if q.large.len > 0 {
		return false
	}
	q.idle.push(r)
	return true
}

// Evict removes and returns the waiters of Idle. It is called after [Budget.Acquire] of Large has
// returned false.
func (b *Budget) Evict() []*Waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queues == nil {
		return nil
	}
	return b.queues.idle.grant(nil, func(*Waiter) bool { return true })
}

// grantLocked grants waiting waiters, in order, while there is room.
func (b *Budget) grantLocked() (granted []*Waiter) {
	if r := b.extraLocked(); r != nil {
		granted = append(granted, r)
	}
	q := b.queues
	if q == nil {
		return granted
	}
	granted = q.made.grant(granted, func(r *Waiter) bool { return b.takeLocked(Made, r) })
	return q.large.grant(granted, func(r *Waiter) bool { return b.takeLocked(Large, r) })
}

// queuesLocked returns the queues, for a waiter that has to wait.
func (b *Budget) queuesLocked() *queues {
	if b.queues == nil {
		b.queues = new(queues)
	}
	return b.queues
}
