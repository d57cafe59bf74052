package flow

import "sync/atomic"

// Tally adds up the bytes that several parts hold, such as the [Counter]s of many sessions. Each
// part is known to within [Step] bytes. A Tally is safe for concurrent use.
type Tally struct {
	parent *Tally // includes this tally in a sum of several; nil: none; fixed, as most
	most   int64  // 0: no limit
	held   atomic.Int64
}

// Step is the largest difference between the bytes that a Counter holds and those that its [Tally]
// knows.
const Step = 16 << 10

// NewTally returns a Tally with a limit of most bytes. 0 is no limit, as in the zero Tally.
func NewTally(most int) *Tally { return &Tally{most: int64(most)} }

// Within adds to parent, too, all bytes that are added to t from now on.
func (t *Tally) Within(parent *Tally) { t.parent = parent }

// Add adds bytes, which may be negative.
func (t *Tally) Add(bytes int) {
	for ; t != nil; t = t.parent {
		t.held.Add(int64(bytes))
	}
}

// Held returns the sum.
func (t *Tally) Held() int { return int(t.held.Load()) }

// Most returns the limit in bytes, 0 being none.
func (t *Tally) Most() int { return int(t.most) }

// Pressed reports whether the sum exceeds half of the limit, of t or of its parent: time to grant
// less credit. It is false for a nil Tally.
func (t *Tally) Pressed() bool {
	for ; t != nil; t = t.parent {
		if t.most > 0 && t.held.Load() > t.most/2 {
			return true
		}
	}
	return false
}

// Over reports whether the sum exceeds the limit: time to reject new work.
func (t *Tally) Over() bool { return t.most > 0 && t.held.Load() > t.most }

// Part is the share of one object in a [Tally]. The zero Part belongs to no Tally. It is safe for
// concurrent use.
type Part struct {
	to    *Tally       // fixed
	bytes atomic.Int64 // known to the Tally; negative after End
}

// ended is the value of Part.bytes after End.
const ended = -1

// Begin makes p a part of t. It is called once, before any other method.
func (p *Part) Begin(t *Tally) { p.to = t }

// Tell reports to the Tally that now bytes are held, unless the Tally knows that number to within a
// [Step]. It returns whether the Tally was updated. After true, a caller that has concurrent
// callers reads its number again and repeats Tell.
func (p *Part) Tell(now int) bool {
	if p.to == nil {
		return false
	}
	known := p.bytes.Load()
	diff := int64(now) - known
	if known < 0 || diff <= Step && diff >= -Step || !p.bytes.CompareAndSwap(known, int64(now)) {
		return false
	}
	p.to.Add(int(diff))
	return true
}

// End subtracts the bytes of p from the Tally. Later calls of Tell have no effect.
func (p *Part) End() {
	if p.to == nil {
		return
	}
	if known := p.bytes.Swap(ended); known > 0 {
		p.to.Add(int(-known))
	}
}

// Tell makes the bytes that c holds a part of t. It is called before the first message.
func (c *Counter) Tell(t *Tally) { c.part.Begin(t) }

// EndTelling subtracts the bytes of c from its [Tally], which ignores c from then on.
func (c *Counter) EndTelling() { c.part.End() }
