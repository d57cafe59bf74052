package interceptors

import (
	"context"

	"github.com/asterisque-go/asterisque"
)

// Retry makes calls of this side again as r does: those that certainly did not run, because a side
// was overloaded or going away, within the attempts and the budget of r. Of a call that carries
// Blocks that is the opening of its pipe on this side: what the peer says of it, a refusal
// included, comes by the pipe, and is not mended here. Calls that are served it leaves alone. It
// panics if r is nil.
//
// Around a Connection ([asterisque.Intercept]) an attempt may be on another session than the one
// before. Around a node all are on the same, which helps against overload only.
func Retry(r *asterisque.Retry) asterisque.Interceptor {
	if r == nil {
		panic("interceptors: Retry(nil): give it a *asterisque.Retry, such as new(asterisque.Retry)")
	}
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if c.Served() {
			return next(ctx, c)
		}
		return r.Do(ctx, func(ctx context.Context) error { return next(ctx, c) })
	}
}
