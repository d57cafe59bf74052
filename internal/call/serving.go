package call

import (
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/priority"
)

// serving is the common state of the peer's calls that a session serves, in addition to
// exchange.
type serving struct {
	private bool // keeps the texts of errors on this side; fixed

	// cap of the peer's priorities; owned by the reader, as the next four
	highest   priority.Priority
	granted   uint8               // bits of the functions permitted by its Grant; see Handler
	openRate  rateLimit           // of calls that the peer cancels
	functions *Functions          // offered to the peer
	inline    *dispatch.Workspace // nil until there is an inline call

	dispatcher dispatch.Dispatcher // locks itself
}

// find returns the handler of a function, or nil if there is none for this peer.
func (s *serving) find(function uint16) *Handler {
	h := s.functions.find(function)
	if h != nil && h.Grants&^s.granted != 0 {
		return nil
	}
	return h
}
