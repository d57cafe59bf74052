package asterisque

import (
	"context"
	"log/slog"

	"github.com/asterisque-go/asterisque/internal/call"
)

// SessionOf returns the session of a handler's context, on which the handler can call its caller
// back. Contexts derived from the handler's work as well. For other contexts SessionOf returns nil,
// on which calls fail with ErrUnavailable.
func SessionOf(ctx context.Context) *Session {
	if c := call.Of(ctx); c != nil {
		return sessionOf(c.Session())
	}
	return nil
}

// sessionOf returns the session of a call.
func sessionOf(s slog.LogValuer) *Session { return (*Session)(s.(*lifecycle)) }

// Session returns the session on which the call is served or made. On the calling side it is nil
// until a session is chosen, as in interceptors above a [Connection]; later it is the session of
// the last attempt.
func (c *Call) Session() *Session {
	x := c.side.Coder()
	if x == nil {
		return nil
	}
	return sessionOf(x.Session)
}
