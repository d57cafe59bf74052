package asterisque

import (
	"cmp"
	"slices"

	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// PipeInfo tells of one running call what it holds up.
type PipeInfo struct {
	Pipe     uint64 // the id, which both sides know
	Function uint16 // the called function's number
	// that the service here gives the function; empty for calls of this side
	Name     string
	Made     bool              // by this side
	Queued   bool              // a call of the peer whose handler has not begun
	Priority priority.Priority // of all its messages
	Waiting  limits.Amount     // Blocks that have arrived and were not taken
}

// Pipes lists the running calls of both sides, in the order of their ids, unary ones included. The
// list belongs to the caller. What it says was true of each call at some moment, not of all of them
// at the same one. It looks at all pipes, and is meant for reports and debugging.
func (s *Session) Pipes() []PipeInfo {
	infos, endpoints := s.table.infos()
	for i, e := range endpoints {
		infos[i].Waiting = waiting(e)
		if c, ok := e.(*incoming); ok {
			infos[i].Queued = s.calls.queued(c)
		}
	}
	slices.SortFunc(infos, func(a, b PipeInfo) int { return cmp.Compare(a.Pipe, b.Pipe) })
	return infos
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

// waiting returns what has arrived for e and was not taken.
func waiting(e endpoint) limits.Amount {
	p := e.untyped()
	if p == nil {
		return limits.Amount{}
	}
	messages, bytes := (*piping.End)(p).Waiting()
	return limits.Amount{Messages: messages, Bytes: bytes}
}
