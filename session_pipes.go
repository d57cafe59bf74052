package asterisque

// Pipes lists the running calls of both sides, in the order of their ids, unary ones included. The
// caller owns the list. Its entries are not from the same instant. Pipes looks at all pipes, and is
// meant for reports and debugging.
func (s *Session) Pipes() []PipeInfo {
	if s == nil {
		return nil
	}
	return s.calls.table.running()
}

// SlowestPipe returns the pipe with the most bytes of Blocks that its application has not taken. It
// returns false if no pipe has any. SlowestPipe looks at all pipes, and is meant for reports and
// debugging.
func (s *Session) SlowestPipe() (slowest PipeInfo, ok bool) {
	for _, p := range s.Pipes() {
		if p.Waiting.Bytes > slowest.Waiting.Bytes {
			slowest, ok = p, true
		}
	}
	return slowest, ok
}
