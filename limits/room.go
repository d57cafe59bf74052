package limits

import "sync"

// Source is the share of a [Room] that the window of a stream is from.
type Source uint8

const (
	Elsewhere Source = iota // nothing, or what was paid in another way: with its Open
	Workers                 // what is guaranteed to running handlers
	Callers                 // what is guaranteed to streams that this side has opened
	Spare                   // what windows grow by
	Nested                  // what streams have that this side has opened within calls
)

// firstGrowth is by how much, in bytes, a window is larger than what is guaranteed from the first,
// as long as most of the spare room is free: enough for a Block of 63 KiB.
const firstGrowth = 64 << 10

// Hold is what one direction of a stream holds of a [Room]. Its owner guards it.
type Hold struct {
	Base   uint32 // what is guaranteed
	Extra  uint32 // what it has grown by, from spare room
	Source Source // of Base
	fresh  bool   // nothing has been taken by the application yet
}

// Bytes returns the size of the window.
func (h *Hold) Bytes() uint64 { return uint64(h.Base) + uint64(h.Extra) }

// ofSpare returns what it holds of the spare room.
func (h *Hold) ofSpare() int {
	n := int(h.Extra)
	if h.Source == Spare {
		n += int(h.Base)
	}
	return n
}

// Room is the budget of what one side promises for Blocks: what is guaranteed, what is spare, and
// the room for one largest message. Nothing else grants credit for them. It is safe for concurrent
// use, and calls nobody: a method that has given room to claims returns these. Its caller passes
// them to [Grant] when it holds no lock.
type Room struct {
	mu      sync.Mutex
	plan    *Plan // guarded by mu, as all below; what it points to never changes
	workers int32 // guaranteed windows that are free
	callers int32
	nested  int    // of the room for streams within calls, what is free
	large   int    // of the room for large Blocks, what is free
	spare   int    // what is free; below 0 when limits became smaller than what was promised
	fresh   int    // of what is not free of the spare room, what nobody has taken anything from yet
	lines   *lines // nil until a claim waits
	tally   *Tally // what else holds memory; nil: nobody says; fixed
}

// lines are the claims that wait.
type lines struct {
	opening, asking line
	late            *Claim // of the handlers without a window; nil if there is none
}

// NewRoom returns a Room in which nothing is promised. Many may share p, and nobody may change it.
func NewRoom(p *Plan) *Room {
	return &Room{plan: p, workers: int32(p.Workers), callers: int32(p.Callers), nested: p.NestedOwn, large: p.Large, spare: p.Spare}
}

// Plan returns the numbers in force.
func (r *Room) Plan() Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.plan
}

// Heed lets windows have no more than what is guaranteed while t is [Tally.Pressed], as far as they
// were not promised more. It is called before anything is promised.
func (r *Room) Heed(t *Tally) { r.tally = t }

// Resize changes the soft limit to so many bytes. What the peer was told stands, and so does every
// promise. New promises wait until they fit. The room is never less than eight of the largest
// messages, and never so small that a claim would wait for ever.
func (r *Room) Resize(bytes int) (*Plan, []*Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plan.resized(bytes)
	r.spare += p.Spare - r.plan.Spare
	r.plan = &p
	return r.plan, r.grantLocked(nil)
}

// Begin gives the handler of a stream its window, when a worker has taken the call. It reports
// false if there is no window. That happens only after limits became smaller: see [Room.Late].
func (r *Room) Begin(h *Hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.beginsLocked() {
		return false
	}
	r.workers--
	h.Source, h.Base = Workers, uint32(r.plan.Window)
	r.firstGrowthLocked(h, r.plan.Spare/2)
	return true
}

// beginsLocked reports whether there is a window for a handler.
func (r *Room) beginsLocked() bool { return r.workers > 0 && r.fitsLocked(r.plan.Window) }

// Late has c granted once there is a window for a handler again. c takes the place of the claim
// that Late was called with before. It reports false, and does nothing, if there is a window
// already.
func (r *Room) Late(c *Claim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.beginsLocked() {
		return false
	}
	r.linesLocked().late = c
	return true
}

// Lend is Begin for a stream whose window is from elsewhere: it may grow all the same.
func (r *Room) Lend(h *Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.Source, h.Base = Elsewhere, uint32(r.plan.Window)
	r.firstGrowthLocked(h, r.plan.Spare/2)
}

// firstGrowthLocked lets a new window be larger while more than half of the spare room is free, and
// the windows from which nothing has been taken yet have no more than most of it in all.
func (r *Room) firstGrowthLocked(h *Hold, most int) {
	h.fresh = true
	n := min(firstGrowth, r.plan.Spare/8)
	if n > 0 && !r.tally.Pressed() && r.spare > r.plan.Spare/2 && r.fresh+n <= most {
		h.Extra = uint32(n)
		r.spare -= n
		r.fresh += n
	}
}

// Open gives a stream that this side opens its window, or puts c in the line of claims that wait
// for one. It sets the Bytes of c. [Room.Opened] says what the stream has got.
func (r *Room) Open(c *Claim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Bytes = r.plan.Window
	if (r.lines == nil || r.lines.opening.lets(c)) && r.openLocked(c) {
		return true
	}
	r.linesLocked().opening.push(c)
	return false
}

// Nest gives a stream that this side opens within a call its window, or reports false if there is
// none. It never waits: the calls around it would wait for it.
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

// Opened fills in h what c, which was granted by Open, has got. The first few windows from which
// nothing has been taken yet are larger, as those of handlers are, so that an answer of some KiB
// need not wait for credit. They have an eighth of what is spare at most, which streams that are
// opened later may have besides half of it, so that no fewer can be.
func (r *Room) Opened(c *Claim, h *Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*h = Hold{Base: uint32(c.Bytes), Source: c.source}
	r.firstGrowthLocked(h, r.plan.Spare/8)
}

// openLocked takes a window for a stream of this side.
func (r *Room) openLocked(c *Claim) bool {
	switch n := c.Bytes; {
	case !r.fitsLocked(n):
		return false
	case r.callers > 0:
		r.callers--
		c.source = Callers
	case r.spare >= n && r.fresh+n <= r.plan.Spare/2+r.plan.Spare/8: // see Opened
		r.spare -= n
		r.fresh += n
		c.source = Spare
	default:
		return false
	}
	return true
}

// fitsLocked reports whether n more may be promised to windows. It matters only after limits became
// smaller. The room for large Blocks is not theirs: a large Block must not wait for windows.
func (r *Room) fitsLocked(n int) bool {
	return r.spare >= 0 || int(r.workers+r.callers)*r.plan.Window+r.spare >= n
}

// Withdraw ends the wait of c, and reports false if it has been granted.
func (r *Room) Withdraw(c *Claim) (waited bool, granted []*Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waited = r.lines != nil && (r.lines.opening.remove(c) || r.lines.asking.remove(c))
	if waited { // it may have kept others waiting
		granted = r.grantLocked(nil)
	}
	return waited, granted
}

// Took notes that the application has taken something from the window for the first time.
func (r *Room) Took(h *Hold) []*Claim {
	if !h.fresh {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takenLocked(h)
	return r.grantLocked(nil)
}

// takenLocked notes that what h has is not fresh any more.
func (r *Room) takenLocked(h *Hold) {
	if h.fresh {
		h.fresh = false
		r.fresh -= h.ofSpare()
	}
}

// Grow makes the window as large as is wanted, or as the spare room allows. Each window has grown
// by at most an eighth of what is free and its own (dynamic thresholds, Choudhury and Hahne 1998),
// so that windows share the room evenly. The windows from which nothing has been taken yet have
// half of it in all. A window shrinks where others need the room, but not below least, which the
// peer was promised.
func (r *Room) Grow(h *Hold, want, least uint64) []*Claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.growLocked(h, want, least, (max(r.spare, 0)+int(h.Extra))/8)
}

// Follow is Grow for the window of a stream whose path is long: it holds as much as the window. The
// share is four fifths. So one stream has nearly all of the spare room, and many share it evenly.
func (r *Room) Follow(h *Hold, want, least uint64) []*Claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.growLocked(h, want, least, (max(r.spare, 0)+int(h.Extra))/5*4)
}

// growLocked makes the window as large as is wanted, if that is no more than its share.
func (r *Room) growLocked(h *Hold, want, least uint64, share int) []*Claim {
	if want <= uint64(h.Base)+firstGrowth && r.spare > r.plan.Spare/2 {
		share = max(share, min(firstGrowth, r.plan.Spare/8))
	}
	if h.fresh {
		share = min(share, int(h.Extra)+max(r.plan.Spare/2-r.fresh, 0))
	}
	if r.tally.Pressed() {
		share = 0
	}
	extra := min(int(max(want, uint64(h.Base))-uint64(h.Base)), share)
	extra = max(extra, int(max(least, uint64(h.Base))-uint64(h.Base)))
	return r.setLocked(h, extra)
}

// Fit makes the window as large as is wanted, if the spare room has place for that. If nothing has
// been taken from the window yet, half of the spare room has to have place. A Block that was
// allowed goes there when no receiver waits for it any more.
func (r *Room) Fit(h *Hold, want uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	more := int(want) - int(h.Bytes())
	switch {
	case more <= 0:
		return true
	case more > r.spare, h.fresh && r.fresh+more > r.plan.Spare/2:
		return false
	}
	r.setLocked(h, int(h.Extra)+more)
	return true
}

// Shrink gives back what the window has beyond least bytes.
func (r *Room) Shrink(h *Hold, least uint64) []*Claim {
	if h.Extra == 0 || h.Bytes() <= least {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.setLocked(h, int(max(least, uint64(h.Base))-uint64(h.Base)))
}

// setLocked changes by how much a window has grown.
func (r *Room) setLocked(h *Hold, extra int) []*Claim {
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

// End gives back all that h holds.
func (r *Room) End(h *Hold) []*Claim {
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

// Allow sets c's Bytes aside for a Block that does not fit into its window, or puts c in the line
// of claims that wait for that.
func (r *Room) Allow(c *Claim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (r.lines == nil || r.lines.asking.lets(c)) && r.allowLocked(c) {
		return true
	}
	r.linesLocked().asking.push(c)
	return false
}

// allowLocked takes what c wants of the room for large Blocks.
func (r *Room) allowLocked(c *Claim) bool {
	if c.Bytes > r.large {
		return false
	}
	r.large -= c.Bytes
	return true
}

// Disallow gives back so many bytes that were set aside by Allow.
func (r *Room) Disallow(bytes int) []*Claim {
	if bytes == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.large += bytes
	return r.grantLocked(nil)
}

// grantLocked gives room to the claims that wait, as far as it goes. It returns granted with these.
func (r *Room) grantLocked(granted []*Claim) []*Claim {
	l := r.lines
	if l == nil {
		return granted
	}
	if l.late != nil && r.beginsLocked() {
		granted, l.late = append(granted, l.late), nil
	}
	for c := l.opening.first(); c != nil && r.openLocked(c); c = l.opening.first() {
		l.opening.remove(c)
		granted = append(granted, c)
	}
	for c := l.asking.first(); c != nil && r.allowLocked(c); c = l.asking.first() {
		l.asking.remove(c)
		granted = append(granted, c)
	}
	return granted
}

// linesLocked returns the lines, for a claim that has to wait.
func (r *Room) linesLocked() *lines {
	if r.lines == nil {
		r.lines = new(lines)
	}
	return r.lines
}

// Grant calls the Granted functions of claims. The caller holds no lock.
func Grant(claims []*Claim) {
	for _, c := range claims {
		c.Granted()
	}
}
