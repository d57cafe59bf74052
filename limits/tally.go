package limits

import "sync/atomic"

// Tally adds up how many bytes several things hold, such as the [Counter]s of many sessions. Each
// of these tells it to within [Step] bytes. It is safe for concurrent use.
type Tally struct {
	parent *Tally // adds up several tallies; nil: none; fixed, as most
	most   int64  // 0: any number
	held   atomic.Int64
}

// Step is by how many bytes what a Counter holds may differ from what it has told its [Tally].
const Step = 16 << 10

// NewTally returns a Tally for at most so many bytes, 0 being any number, as the zero Tally has it.
func NewTally(most int) *Tally { return &Tally{most: int64(most)} }

// Within lets parent have as well whatever is added to t from now on.
func (t *Tally) Within(parent *Tally) { t.parent = parent }

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

// Part is what one thing holds of a [Tally]. The zero Part has no Tally to tell. It is safe for
// concurrent use.
type Part struct {
	to    *Tally       // fixed
	bytes atomic.Int64 // that were told; negative after End
}

// ended stands for the bytes of a Part after its End.
const ended = -1

// Begin lets p tell t. It is called once, before anything else.
func (p *Part) Begin(t *Tally) { p.to = t }

// Tell tells the Tally that so many bytes are held now, unless it knows that to within a [Step]. It
// reports whether it did. Where several goroutines tell, one that did looks once more at what is
// held then.
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

// End takes back what was told. From then on the Tally is told nothing.
func (p *Part) End() {
	if p.to == nil {
		return
	}
	if known := p.bytes.Swap(ended); known > 0 {
		p.to.Add(int(-known))
	}
}

// Tell lets c tell t, from now on, what it holds. It is called before the first message.
func (c *Counter) Tell(t *Tally) { c.part.Begin(t) }

// EndTelling takes back what c has told its [Tally]. From then on the Tally is told nothing.
func (c *Counter) EndTelling() { c.part.End() }
