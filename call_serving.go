package asterisque

import (
	"github.com/asterisque-go/asterisque/priority"
)

// serving is the common state of the peer's calls that a session serves, in addition to exchange.
type serving struct {
	private bool // keeps the texts of errors on this side; fixed

	highest priority.Priority // cap of the peer's priorities; owned by the reader, as the next four
	granted standards         // the standard functions permitted by its Grant
	pace    pace              // of calls that the peer cancels
	service *Service          // offered to the peer
	inline  *workspace        // nil until there is an inline call

	calls dispatcher // locks itself
}

// find returns the handler of a function, or nil if there is none for this peer.
func (s *serving) find(function uint16) *handler {
	h := s.service.find(function)
	if h != nil && h.grants&^s.granted != 0 {
		return nil
	}
	return h
}
