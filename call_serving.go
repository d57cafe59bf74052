package asterisque

import (
	"github.com/asterisque-go/asterisque/priority"
)

// serving is what the calls of the peer have in common that a session serves, besides what all its
// calls have.
type serving struct {
	private bool // the texts of errors stay here; fixed

	highest priority.Priority // that the peer's calls get; the reader's, as the next four
	granted standards         // the standard functions that its Grant has
	pace    pace              // of calls that it gives up
	service *Service          // what the peer may call
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
