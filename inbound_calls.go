package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/priority"
)

// inboundCalls is the common state of the peer's calls that a session serves, in addition to
// exchange.
type inboundCalls struct {
	private bool // keeps the texts of errors on this side; fixed

	// cap of the peer's priorities; owned by the reader, as the next four
	highest   priority.Priority
	granted   uint8               // bits of the functions permitted by its Grant; see callHandler
	openRate  rateLimit           // of calls that the peer cancels
	functions *callFunctions      // offered to the peer
	inline    *dispatch.Workspace // nil until there is an inline call

	dispatcher dispatch.Dispatcher // locks itself
}

// find returns the handler of a function, or nil if there is none for this peer.
func (s *inboundCalls) find(function uint16) *callHandler {
	h := s.functions.find(function)
	if h != nil && h.grants&^s.granted != 0 {
		return nil
	}
	return h
}
