package limits

import "sync/atomic"

// Tally adds up how many bytes several things hold, such as the [Counter]s of many sessions, which
// tell it to within [Step] bytes each. It is safe for concurrent use.
type Tally struct {
	parent *Tally // adds up several tallies; nil: none; fixed, as most
	most   int64  // 0: any number
	held   atomic.Int64
}

// Step is by how many bytes what a Counter holds may differ from what it has told its [Tally].
const Step = 16 << 10

// NewTally returns a Tally for at most so many bytes, 0 being any number. What is added to it is
// added to parent as well, unless that is nil.
func NewTally(parent *Tally, most int) *Tally { return &Tally{parent: parent, most: int64(most)} }

// Add adds bytes, which may be negative.
func (t *Tally) Add(bytes int) {
	for ; t != nil; t = t.parent {
		t.held.Add(int64(bytes))
	}
}

// Held returns the sum.
func (t *Tally) Held() int { return int(t.held.Load()) }

// Most returns how many bytes there may be, 0 being any number.
func (t *Tally) Most() int { return int(t.most) }

// Pressed reports whether the sum is above half of what it may be, here or at the parent: time to
// promise less. It is false for a nil Tally.
func (t *Tally) Pressed() bool {
	for ; t != nil; t = t.parent {
		if t.most > 0 && t.held.Load() > t.most/2 {
			return true
		}
	}
	return false
}

// Over reports whether the sum is above what it may be: time to refuse what comes anew.
func (t *Tally) Over() bool { return t.most > 0 && t.held.Load() > t.most }

// told is what a Counter has told its Tally.
type told struct {
	to    *Tally       // nil: nobody is told; set before the first message
	bytes atomic.Int64 // negative once nobody is told any more
}

// ended stands for bytes of which nobody is told any more.
const ended = -1

// tell tells the Tally what is held now, if that is another number than it knows, by more than a step.
func (t *told) tell(now int) {
	if t.to == nil {
		return
	}
	known := t.bytes.Load()
	if diff := int64(now) - known; known >= 0 && (diff > Step || diff < -Step) && t.bytes.CompareAndSwap(known, int64(now)) {
		t.to.Add(int(diff))
	}
}

// end takes what was told back.
func (t *told) end() {
	if t.to == nil {
		return
	}
	if known := t.bytes.Swap(ended); known > 0 {
		t.to.Add(int(-known))
	}
}

// Tell lets c tell t, from now on, what it holds. It is called before the first message.
func (c *Counter) Tell(t *Tally) { c.told.to = t }

// EndTelling takes what c has told its [Tally] back, which is told no more.
func (c *Counter) EndTelling() { c.told.end() }
