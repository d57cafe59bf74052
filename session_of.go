package asterisque

import "context"

// SessionOf returns the session that a handler's context belongs to, through which the handler can
// call its caller back, or nil for other contexts: calls on that fail with ErrUnavailable. Contexts
// derived from the handler's are as good.
func SessionOf(ctx context.Context) *Session {
	by, _ := carriedBy(ctx)
	if c, ok := by.(*served); ok {
		return c.x.session.(*Session)
	}
	return nil
}

// Session returns the session that the call is served on, or made on. On the calling side that is
// nil as long as none is known, as around a [Connection]; otherwise it is that of the last attempt.
func (c *Call) Session() *Session {
	x := c.side.codecOf()
	if x == nil {
		return nil
	}
	return x.session.(*Session)
}
