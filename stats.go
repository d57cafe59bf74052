package asterisque

import (
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// Stats is a snapshot of a session.
type Stats struct {
	Pipes    int           // running calls of both sides
	Waiting  int           // calls of the peer that wait for a worker
	Running  int           // workers that are busy with calls of the peer
	Inbound  limits.Amount // received and not yet taken by the application
	Outbound limits.Amount // sent and not yet given to the Wire

	InboundState  limits.State
	OutboundState limits.State
}

// Stats returns what the session holds now. The numbers are read one after the other, not in one instant.
func (s *Session) Stats() Stats {
	waiting, running := s.calls.load()
	return Stats{
		Pipes:         s.table.len(),
		Waiting:       waiting,
		Running:       running,
		Inbound:       s.inbound.Held(),
		Outbound:      s.outbound.Held(),
		InboundState:  s.inbound.State(),
		OutboundState: s.outbound.State(),
	}
}

// PipeInfo tells of one running call what it holds up.
type PipeInfo struct {
	Pipe     uint64        // the id, which both sides know
	Function uint16        // the called function's number
	Waiting  limits.Amount // Blocks that have arrived and were not taken
}

// SlowestPipe reports the pipe whose application is the furthest behind with taking Blocks, by bytes. It is false if none is behind. It looks at all pipes, and
// is meant for reports and debugging.
func (s *Session) SlowestPipe() (slowest PipeInfo, ok bool) {
	for id, e := range s.table.all() {
		p := e.untyped()
		if p == nil {
			continue
		}
		messages, bytes := (*pipe.End)(p).Waiting()
		waiting := limits.Amount{Messages: messages, Bytes: bytes + messages*limits.Overhead}
		if waiting.Bytes > slowest.Waiting.Bytes {
			slowest, ok = PipeInfo{Pipe: id, Function: p.Function(), Waiting: waiting}, true
		}
	}
	return slowest, ok
}
