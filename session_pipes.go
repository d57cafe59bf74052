package asterisque

import (
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// PipeInfo describes a running call.
type PipeInfo struct {
	Pipe     uint64 // the id, the same on both sides
	Function uint16 // number of the called function
	// name of the function in this side's service; empty for calls of this side
	Name     string
	Made     bool              // by this side
	Queued   bool              // a call of the peer that has not begun
	Priority priority.Priority // of all its messages
	Waiting  limits.Amount     // Blocks that have arrived and have not been taken
}

// Pipes lists the running calls of both sides, in the order of their ids, unary ones included. The
// caller owns the list. Its entries are not from the same instant. Pipes looks at all pipes, and is
// meant for reports and debugging.
func (s *Session) Pipes() []PipeInfo {
	if s == nil {
		return nil
	}
	infos := s.calls.Running()
	pipes := make([]PipeInfo, len(infos))
	for i, info := range infos {
		pipes[i] = PipeInfo(info)
	}
	return pipes
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
