package priority

// spareLines keeps some empty lines, so that short-lived lines allocate nothing.
type spareLines[L linePointer] struct {
	lines []L
	held  int // bytes, of all lines
}

// linePointer is a pointer to a line.
type linePointer interface {
	Held() int // bytes, of the line itself and its memory, while it is empty
}

// put keeps l, an empty line, if it takes no more than half of the unused part of most bytes. So a
// large line leaves room for some smaller ones.
func (s *spareLines[L]) put(l L, most int) {
	if held := l.Held(); held <= (most-s.held)/2 {
		s.lines = append(s.lines, l)
		s.held += held
	}
}

// take returns an empty line if there is one.
func (s *spareLines[L]) take() (l L, ok bool) {
	last := len(s.lines) - 1
	if last < 0 {
		return l, false
	}
	l, s.lines[last] = s.lines[last], l
	s.lines = s.lines[:last]
	s.held -= l.Held()
	return l, true
}
