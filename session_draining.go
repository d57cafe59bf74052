package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/internal/call"
)

// Draining returns a channel that is closed when the session of a handler's call begins to drain:
// this side shuts it down ([Session.Shutdown], [Node.Shutdown]) or closes it, or the peer shuts it
// down. Running calls may finish then, and are cut after [Timeouts].Drain. A handler that would run
// forever, such as the handler of a stream of events, watches the channel and ends by itself:
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
// The channel stays open when the session is lost: that ends ctx. Contexts derived from a handler's
// context work as well. For any other context the channel is nil, and receiving from it blocks
// forever. Draining does not block, is safe for concurrent use, and costs memory only for sessions
// in which it is called.
func Draining(ctx context.Context) <-chan struct{} {
	if c := call.Of(ctx); c != nil {
		return sessionOf(c.Session()).calls.Draining()
	}
	return nil
}
