package asterisque

import "context"

// SessionOf returns the session that a handler's context belongs to, through which the handler can
// call its caller back, or nil for other contexts. Contexts derived from the handler's are as good.
func SessionOf(ctx context.Context) *Session {
	by, _ := carriedBy(ctx)
	if c, ok := by.(*served); ok {
		return c.x.session.(*Session)
	}
	return nil
}
