package flow

import "slices"

// Claim is a request for room that may have to wait. Waiting claims are granted by priority, and in
// order of arrival among equals.
type Claim struct {
	Priority int8
	Bytes    int    // of room that the claim needs
	Granted  func() // called once, without a lock, when the room is granted

	source  Source // of the room that was granted
	seq     uint64 // order of arrival
	waiting bool   // the claim is in a line
}

// line is a list of claims in the order in which they will be granted. The zero line is empty.
type line struct {
	claims []*Claim
	seq    uint64
}

// before compares claims by their order.
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

// remove removes c and reports whether it was in l.
func (l *line) remove(c *Claim) bool {
	if !c.waiting {
		return false
	}
	at, _ := slices.BinarySearchFunc(l.claims, c, before)
	if at == len(l.claims) || l.claims[at] != c { // c is in another line
		return false
	}
	l.claims = slices.Delete(l.claims, at, at+1)
	c.waiting = false
	return true
}

// allows reports whether c may be granted now, because no claim of its priority or a higher one
// waits.
func (l *line) allows(c *Claim) bool {
	f := l.first()
	return f == nil || f.Priority < c.Priority
}

// first returns the claim that is next in turn, or nil.
func (l *line) first() *Claim {
	if len(l.claims) == 0 {
		return nil
	}
	return l.claims[0]
}
