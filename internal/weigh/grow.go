package weigh

import "math/bits"

// GrowingSlice follows a slice to which a decoder appends, as the runtime grows it.
type GrowingSlice struct {
	n, room, bytes int
}

// Append counts one more element of so many bytes. While the elements move, both arrays are held.
func (s *GrowingSlice) Append(t *Tally, size int) {
	if s.n++; s.n <= s.room || size == 0 {
		return
	}
	more := 2*s.room + 1
	if s.room >= 256 {
		more = s.room + (s.room+3*256)/4
	} else if s.room > 0 {
		more--
	}
	before := s.bytes
	s.bytes = Alloc(Times(more, size))
	s.room = s.bytes / size
	t.Add(s.bytes)
	t.Drop(before)
}

// MapSize is what a map is besides its entries.
const MapSize = 48

const (
	group    = 8    // entries that are allocated together
	wholeMap = 1024 // entries beyond which a map is divided, and its parts grow one by one
)

// GrowingMap follows a map as the runtime grows it.
type GrowingMap struct {
	n, slots, bytes int
}

// Make counts a map that is made for n entries of so many bytes.
func (m *GrowingMap) Make(t *Tally, n, entry int) {
	if n <= group {
		return // it begins with the first entry
	}
	want := n + (n+6)/7
	m.slots = above(want) // as many parts as there are times wholeMap in it
	if n > m.load() {
		m.slots *= 2
	}
	m.bytes = m.size(entry)
	t.Add(m.bytes)
}

// Put counts one more entry.
func (m *GrowingMap) Put(t *Tally, entry int) {
	if m.n++; m.n <= m.load() {
		return
	}
	before := m.bytes
	m.slots = max(group, 2*m.slots)
	m.bytes = m.size(entry)
	if m.slots > wholeMap { // most of it stays where it is
		t.Add(m.bytes - before)
		return
	}
	t.Add(m.bytes)
	t.Drop(before)
}

// Bytes returns what the entries hold.
func (m *GrowingMap) Bytes() int { return m.bytes }

// load returns how many entries there is room for. The parts of a large map are not all equally
// full.
func (m *GrowingMap) load() int {
	switch {
	case m.slots <= group:
		return m.slots
	case m.slots <= wholeMap:
		return m.slots - m.slots/8
	}
	return m.slots - m.slots/4
}

func (m *GrowingMap) size(entry int) int {
	const table = 64 // what one is besides its entries
	slots, parts := min(m.slots, wholeMap), max(1, m.slots/wholeMap)
	n := Alloc(Times(slots/group, 8+group*entry))
	if m.slots > group {
		n += table
	}
	return Times(n, parts)
}

// above returns the next power of two.
func above(n int) int { return 1 << bits.Len(uint(n-1)) }
