package sizing

import "math/bits"

// GrowingSlice tracks the memory of a slice to which a decoder appends, as the runtime grows it.
type GrowingSlice struct {
	n, room, bytes int
}

// Append counts one more element of size bytes. While the elements are copied, both arrays are
// counted.
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

// MapSize is the size of a map besides its entries.
const MapSize = 48

const (
	group    = 8    // entries that are allocated together
	wholeMap = 1024 // entries beyond which a map is divided into parts that grow one by one
)

// GrowingMap tracks the memory of a map as the runtime grows it.
type GrowingMap struct {
	n, slots, bytes int
}

// Make counts a map made for n entries of the given size.
func (m *GrowingMap) Make(t *Tally, n, entry int) {
	if n <= group {
		return // allocated with the first entry
	}
	want := n + (n+6)/7
	m.slots = above(want) // as many parts as multiples of wholeMap
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
	if m.slots > wholeMap { // most entries stay in place
		t.Add(m.bytes - before)
		return
	}
	t.Add(m.bytes)
	t.Drop(before)
}

// Bytes returns the memory of the entries.
func (m *GrowingMap) Bytes() int { return m.bytes }

// load returns the number of entries that fit. The parts of a large map are not equally full.
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
	const table = 64 // size of a table besides its entries
	slots, parts := min(m.slots, wholeMap), max(1, m.slots/wholeMap)
	n := Alloc(Times(slots/group, 8+group*entry))
	if m.slots > group {
		n += table
	}
	return Times(n, parts)
}

// above returns the next power of two.
func above(n int) int { return 1 << bits.Len(uint(n-1)) }
