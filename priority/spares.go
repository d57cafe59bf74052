package priority

// spares keeps some empty lines, so that lines which come and go allocate nothing.
type spares[L holder] struct {
	lines []L
	held  int // bytes, by all of them
}

// holder is a pointer to a line.
type holder interface {
	Held() int // bytes, with the line itself, while that is empty
}

// put keeps l, which is empty, if it fills no more than half of what is left of most bytes: so a
// large one leaves room for some that are smaller.
func (s *spares[L]) put(l L, most int) {
	if held := l.Held(); held <= (most-s.held)/2 {
		s.lines = append(s.lines, l)
		s.held += held
	}
}

// take returns an empty line if there is one.
func (s *spares[L]) take() (l L, ok bool) {
	last := len(s.lines) - 1
	if last < 0 {
		return l, false
	}
	l, s.lines[last] = s.lines[last], l
	s.lines = s.lines[:last]
	s.held -= l.Held()
	return l, true
}
