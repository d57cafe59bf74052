package flow

import "sync"

// Source is the share of a [Room] that the base of a window comes from.
type Source uint8

const (
	Elsewhere Source = iota // no share: no window, or one paid by its Open
	Workers                 // guaranteed to running handlers
	Callers                 // guaranteed to streams that this side has opened
	Spare                   // for the growth of windows
	Nested                  // for streams that this side has opened within calls
)

// firstWindow is the size of a new window while there is spare room.
const firstWindow = 64 << 10

// Hold is the room that one direction of a stream holds in a [Room]. Its owner guards it.
type Hold struct {
	Base   uint32 // guaranteed bytes
	Extra  uint32 // growth, from spare room
	Source Source // of Base
	fresh  bool   // the application has taken nothing yet
}

// Bytes returns the size of the window.
func (h *Hold) Bytes() uint64 { return uint64(h.Base) + uint64(h.Extra) }

// ofSpare returns the bytes of the spare room that h holds.
func (h *Hold) ofSpare() int {
	n := int(h.Extra)
	if h.Source == Spare {
		n += int(h.Base)
	}
	return n
}

// Room is the budget for the Block credit that one side grants: the guaranteed windows, the spare
// room, and the room for one largest message. No other code grants credit for Blocks. A Room is
// safe for concurrent use.
//
// A Room never calls back. A method that grants waiters returns them, and its caller passes them to
// [Grant] after it has released all locks.
type Room struct {
	mu      sync.Mutex
	plan    *Plan // guarded by mu, as all below; the Plan it points to never changes
	workers int32 // free guaranteed windows
	callers int32
	nested  int          // free room for streams within calls
	large   int          // free room for large Blocks
	spare   int          // free spare room; negative after limits became smaller
	fresh   int          // part of the used spare room: windows from which nothing was taken yet
	extra   *extraCredit // nil until the peer takes some
	lines   *lines       // nil until a waiter waits
	tally   *Tally       // total memory, for Pressed; nil: never pressed; fixed
}

// lines are the waiting requests.
type lines struct {
	opening, asking waitList
	late            *Waiter   // for a handler without a window; nil if there is none
	idle            []*Waiter // of holders that take no Block: see Idle
}

// NewRoom returns a Room that has granted nothing. Rooms may share p, which must not change any
// more.
func NewRoom(p *Plan) *Room {
	return &Room{plan: p, workers: int32(p.Workers), callers: int32(p.Callers), nested: p.NestedOwn, large: p.Large, spare: p.Spare - p.Extra}
}

// Plan returns the plan in force.
func (r *Room) Plan() Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.plan
}

// Heed limits windows to their guarantee while t is [Tally.Pressed], except for credit that was
// granted before. It is called before the first grant.
func (r *Room) Heed(t *Tally) { r.tally = t }

// Resize changes the soft limit to the given bytes. Granted credit and guarantees remain valid; new
// grants wait until they fit. The room is never smaller than eight of the largest messages, nor so
// small that a request would wait for ever.
func (r *Room) Resize(bytes int) []*Waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plan.resized(bytes)
	r.spare += p.Spare - r.plan.Spare
	r.plan = &p
	return r.grantLocked(nil)
}

// Begin gives a handler its window when a worker has taken the call. It reports false if there is
// no window, which happens only after limits became smaller: see [Room.Late].
func (r *Room) Begin(h *Hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.beginsLocked() {
		return false
	}
	r.workers--
	h.Source, h.Base = Workers, uint32(r.plan.Window)
	r.firstGrowthLocked(h)
	return true
}

// beginsLocked reports whether a window for a handler is free.
func (r *Room) beginsLocked() bool { return r.workers > 0 && r.fitsLocked(r.plan.Window) }

// Late registers w, to be granted once a window for a handler is free. w replaces the waiter of an
// earlier call of Late. Late reports false, and does nothing, if a window is free already.
func (r *Room) Late(w *Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.beginsLocked() {
		return false
	}
	r.linesLocked().late = w
	return true
}

// Lend is Begin for a stream with a guarantee from another source than this Room. Its window may
// grow like any other.
func (r *Room) Lend(h *Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.Source, h.Base = Elsewhere, uint32(r.plan.Window)
	r.firstGrowthLocked(h)
}

// firstGrowthLocked enlarges a new window, by at most an eighth of the free spare room. The
// application has taken nothing yet from fresh windows: see freshLocked.
func (r *Room) firstGrowthLocked(h *Hold) {
	h.fresh = true
	n := min(firstWindow-int(h.Base), r.spare/8, r.freshLocked())
	if n > 0 && !r.tally.Pressed() {
		h.Extra = uint32(n)
		r.spare -= n
		r.fresh += n
	}
}

// freshLocked returns how far all fresh windows together may still grow. With the extra credit they
// hold no more than an eighth of the room, so that streams that are never read leave room for the
// others.
func (r *Room) freshLocked() int { return max(r.plan.Room/8-r.fresh-r.extraLeft(), 0) }

// Open takes a window for a stream that this side opens, or queues w until one is free. It sets the
// Bytes of w. [Room.Opened] returns the window.
func (r *Room) Open(w *Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Bytes = r.plan.Window
	if (r.lines == nil || r.lines.opening.passes(w.Priority)) && r.openLocked(w) {
		return true
	}
	r.linesLocked().opening.push(w)
	return false
}

// Nest takes the window of a stream that this side opens within a call, or reports false if none is
// free. It never waits, because the enclosing calls would wait with it.
func (r *Room) Nest(h *Hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.plan.Window
	if r.nested < n {
		return false
	}
	r.nested -= n
	*h = Hold{Base: uint32(n), Source: Nested}
	return true
}

// Opened stores in h the window that Open granted to w. It is larger than the guarantee while there
// is spare room, like those of handlers, so that an answer of some KiB needs no further credit.
func (r *Room) Opened(w *Waiter, h *Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*h = Hold{Base: uint32(w.Bytes), Source: w.source}
	r.firstGrowthLocked(h)
}

// openLocked takes a window for a stream of this side. It takes the window from the spare room
// while that has room for eight.
func (r *Room) openLocked(w *Waiter) bool {
	switch n := w.Bytes; {
	case !r.fitsLocked(n):
		return false
	case r.callers > 0:
		r.callers--
		w.source = Callers
	case r.spare >= 8*n:
		r.spare -= n
		w.source = Spare
	default:
		return false
	}
	return true
}

// fitsLocked reports whether n more bytes may be granted to windows. The check matters only after
// limits became smaller. The room for large Blocks is kept apart: a large Block must not wait for
// windows.
func (r *Room) fitsLocked(n int) bool {
	return r.spare >= 0 || int(r.workers+r.callers)*r.plan.Window+r.spare >= n
}

// Withdraw ends the wait of w, and reports false if w has been granted before.
func (r *Room) Withdraw(w *Waiter) (waited bool, granted []*Waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waited = r.lines != nil && (r.lines.opening.remove(w) || r.lines.asking.remove(w))
	if waited { // waiters behind it may fit now
		granted = r.grantLocked(nil)
	}
	return waited, granted
}

// Took records that the application has taken bytes from the window for the first time.
func (r *Room) Took(h *Hold) []*Waiter {
	if !h.fresh {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takenLocked(h)
	return r.grantLocked(nil)
}

// takenLocked records that h is not fresh any more.
func (r *Room) takenLocked(h *Hold) {
	if h.fresh {
		h.fresh = false
		r.fresh -= int(h.Extra)
	}
}

// Grow enlarges the window to want bytes, or as far as the spare room allows. The growth of each
// window is at most four times the spare room that is free afterwards (dynamic thresholds,
// Choudhury and Hahne 1998): one stream may use most of the spare room, and many share it evenly. A
// window shrinks when other windows need the room, but not below least, the credit that the peer
// was granted.
func (r *Room) Grow(h *Hold, want, least uint64) []*Waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	share := max(r.spare+int(h.Extra), 0) / 5 * 4
	if h.fresh {
		share = min(share, int(h.Extra)+r.freshLocked())
	}
	if r.tally.Pressed() {
		share = 0
	}
	extra := min(int(max(want, uint64(h.Base))-uint64(h.Base)), share)
	extra = max(extra, int(max(least, uint64(h.Base))-uint64(h.Base)))
	return r.setLocked(h, extra)
}

// Fit enlarges the window to want bytes and reports true, if the spare room suffices. It is for a
// Block that was granted room by Allow, after its receiver has stopped waiting.
func (r *Room) Fit(h *Hold, want uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	more := int(want) - int(h.Bytes())
	if more > max(r.spare, 0) {
		return false
	}
	if more > 0 {
		r.setLocked(h, int(h.Extra)+more)
	}
	return true
}

// Shrink releases the bytes of the window beyond least.
func (r *Room) Shrink(h *Hold, least uint64) []*Waiter {
	if h.Extra == 0 || h.Bytes() <= least {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.setLocked(h, int(max(least, uint64(h.Base))-uint64(h.Base)))
}

// setLocked sets the growth of a window.
func (r *Room) setLocked(h *Hold, extra int) []*Waiter {
	more := extra - int(h.Extra)
	h.Extra = uint32(extra)
	r.spare -= more
	if h.fresh {
		r.fresh += more
	}
	if more >= 0 {
		return nil
	}
	return r.grantLocked(nil)
}

// End releases all room that h holds.
func (r *Room) End(h *Hold) []*Waiter {
	if *h == (Hold{}) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takenLocked(h)
	r.spare += h.ofSpare()
	switch h.Source {
	case Workers:
		r.workers++
	case Callers:
		r.callers++
	case Nested:
		r.nested += int(h.Base)
	}
	*h = Hold{}
	return r.grantLocked(nil)
}

// Allow reserves Bytes of w for a Block that does not fit into its window, or queues w until they
// are free.
func (r *Room) Allow(w *Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (r.lines == nil || r.lines.asking.passes(w.Priority)) && r.allowLocked(w) {
		return true
	}
	r.linesLocked().asking.push(w)
	return false
}

// allowLocked takes the bytes of w from the room for large Blocks.
func (r *Room) allowLocked(w *Waiter) bool {
	if w.Bytes > r.large {
		return false
	}
	r.large -= w.Bytes
	return true
}

// Disallow releases bytes that Allow has reserved.
func (r *Room) Disallow(bytes int) []*Waiter {
	if bytes == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.large += bytes
	return r.grantLocked(nil)
}

// grantLocked grants waiting waiters, in order, while there is room. It appends them to granted.
func (r *Room) grantLocked(granted []*Waiter) []*Waiter {
	if w := r.extraLocked(); w != nil {
		granted = append(granted, w)
	}
	l := r.lines
	if l == nil {
		return granted
	}
	if l.late != nil && r.beginsLocked() {
		granted, l.late = append(granted, l.late), nil
	}
	for w := l.opening.first(); w != nil && r.openLocked(w); w = l.opening.first() {
		l.opening.remove(w)
		granted = append(granted, w)
	}
	for w := l.asking.first(); w != nil && r.allowLocked(w); w = l.asking.first() {
		l.asking.remove(w)
		granted = append(granted, w)
	}
	return granted
}

// linesLocked returns the lines, for a waiter that has to wait.
func (r *Room) linesLocked() *lines {
	if r.lines == nil {
		r.lines = new(lines)
	}
	return r.lines
}

// Grant reports to waiters that their room is granted. The caller holds no lock.
func Grant(waiters []*Waiter) {
	for _, w := range waiters {
		w.Granted(true)
	}
}
