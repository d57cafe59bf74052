package main

import (
	"context"
	"net"

	"github.com/asterisque-go/asterisque"
)

// Events that a replica records for the report, beside its work.

// watch is an interceptor outside the record of orders: an order that is answered, and has run at
// another replica, was answered from the record.
func (r *replica) watch(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	o, ok := c.Params().(order)
	if !ok {
		return next(ctx, c)
	}
	err := next(ctx, c)
	if by, ok := c.Result().(receipt); err == nil && ok && by.Replica != r.id {
		r.ledger.note(o.Number, fromAnother)
	}
	return err
}

// back records how the peer of a session has reconnected: a relayed session has no socket here.
func (r *replica) back(s *asterisque.Session) {
	from := s.Peer().RemoteAddr
	_, socket := from.(*net.TCPAddr)
	what := resumedElsewhere
	switch {
	case socket:
		what = resumedThere
	case from.Network() != "tcp":
		what = resumedInNATS
	}
	r.ledger.note(number{r.id, 1}, what)
}
