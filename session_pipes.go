package asterisque

// Pipes lists the running calls of both sides, in the order of their ids, unary ones included. The
// list belongs to the caller. What it says was true of each call at some moment, not of all of them
// at the same one. It looks at all pipes, and is meant for reports and debugging.
func (s *Session) Pipes() []PipeInfo {
	if s == nil {
		return nil
	}
	return s.table.running()
}

// SlowestPipe reports the pipe whose application is the furthest behind with taking Blocks, by
// bytes. It is false if none is behind. It looks at all pipes, and is meant for reports and
// debugging.
func (s *Session) SlowestPipe() (slowest PipeInfo, ok bool) {
	for _, p := range s.Pipes() {
		if p.Waiting.Bytes > slowest.Waiting.Bytes {
			slowest, ok = p, true
		}
	}
	return slowest, ok
}
