package asterisque

import "container/heap"

// mostAway are the owners that have sessions away, as a heap: the first one has most, in bytes or
// in sessions. There may be tens of thousands, and each session that is too many asks for the
// first.
type mostAway struct {
	inBytes bool // fixed
	all     []*ownersAway
}

// fix puts of where it belongs after what it has has changed.
func (m *mostAway) fix(of *ownersAway) {
	at := of.places[m.which()]
	switch {
	case at == 0 && of.sessions > 0:
		heap.Push(m, of)
	case at > 0 && of.sessions == 0:
		heap.Remove(m, at-1)
	case at > 0:
		heap.Fix(m, at-1)
	}
}

// which returns which of the places of an owner is the one here.
func (m *mostAway) which() int {
	if m.inBytes {
		return 1
	}
	return 0
}

// Len implements heap.Interface.
func (m *mostAway) Len() int { return len(m.all) }

// Less implements heap.Interface.
func (m *mostAway) Less(i, j int) bool {
	if m.inBytes {
		return m.all[i].bytes > m.all[j].bytes
	}
	return m.all[i].sessions > m.all[j].sessions
}

// Swap implements heap.Interface.
func (m *mostAway) Swap(i, j int) {
	m.all[i], m.all[j] = m.all[j], m.all[i]
	m.all[i].places[m.which()], m.all[j].places[m.which()] = i+1, j+1
}

// Push implements heap.Interface.
func (m *mostAway) Push(x any) {
	of := x.(*ownersAway)
	m.all = append(m.all, of)
	of.places[m.which()] = len(m.all)
}

// Pop implements heap.Interface.
func (m *mostAway) Pop() any {
	last := len(m.all) - 1
	of := m.all[last]
	m.all[last], m.all = nil, m.all[:last]
	of.places[m.which()] = 0
	return of
}
