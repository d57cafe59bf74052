package limits

import "slices"

// Claim is a wait for room. Claims get it by priority, and among equals in the order of arrival.
type Claim struct {
	Priority int8
	Bytes    int    // of room that is wanted
	Granted  func() // is called once when the room is the claim's, without a lock

	source  Source // of what was granted
	seq     uint64 // when it came
	waiting bool   // it is in a line
}

// line is claims in their order. The zero line is empty.
type line struct {
	claims []*Claim
	seq    uint64
}

// before orders claims.
func before(a, b *Claim) int {
	switch {
	case a.Priority != b.Priority:
		return int(b.Priority) - int(a.Priority)
	case a.seq < b.seq:
		return -1
	case a.seq > b.seq:
		return 1
	}
	return 0
}

func (l *line) push(c *Claim) {
	l.seq++
	c.seq, c.waiting = l.seq, true
	at, _ := slices.BinarySearchFunc(l.claims, c, before)
	l.claims = slices.Insert(l.claims, at, c)
}

// remove reports whether c was in l.
func (l *line) remove(c *Claim) bool {
	if !c.waiting {
		return false
	}
	at, _ := slices.BinarySearchFunc(l.claims, c, before)
	if at == len(l.claims) || l.claims[at] != c { // it is in another one
		return false
	}
	l.claims = slices.Delete(l.claims, at, at+1)
	c.waiting = false
	return true
}

// lets reports whether c need not wait behind others.
func (l *line) lets(c *Claim) bool {
	f := l.first()
	return f == nil || f.Priority < c.Priority
}

// first returns the claim whose turn it is, or nil.
func (l *line) first() *Claim {
	if len(l.claims) == 0 {
		return nil
	}
	return l.claims[0]
}
