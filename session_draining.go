package asterisque

import "context"

// Draining returns a channel that is closed when the session begins to drain on which the call of a
// handler is served: this side shuts it down ([Session.Shutdown], [Node.Shutdown]), closes it, or
// the peer shuts it down. Calls that run may finish then, and are cut when the time of
// [Timeouts].Drain is over. So a handler that would run for ever, such as that of a stream of news,
// looks at the channel and ends by itself:
//
//	for {
//		select {
//		case n := <-news:
//			…
//		case <-asterisque.Draining(ctx):
//			return nil, nil // the caller comes back, to another node
//		case <-ctx.Done():
//			return nil, ctx.Err()
//		}
//	}
//
// It stays open when the session is lost: that ends ctx. Contexts derived from that of a handler
// are as good. For any other context the channel is nil, from which nothing ever comes. Draining
// does not wait, may be called from several goroutines, and costs only sessions in which it is
// called.
func Draining(ctx context.Context) <-chan struct{} {
	by, _ := carriedBy(ctx)
	if c, ok := by.(*served); ok {
		return c.x.table.draining()
	}
	return nil
}
