package asterisque

// Outstanding tells how much of the window of a function is used, so that a caller can find out
// before it prepares an expensive call.
func (s *Session) Outstanding(function uint16) Outstanding { return s.windows[function].used() }
