package interceptors

import (
	"context"

	"github.com/asterisque-go/asterisque"
)

// Retry retries outbound calls as r does: those that certainly did not run, because a side was
// overloaded or shutting down, within the attempts and the budget of r. For a call that carries
// Blocks it retries only the opening of the pipe on this side. The peer's answer, a rejection
// included, arrives by the pipe and is not retried. Served calls pass unchanged. Retry panics if r
// is nil.
//
// At a Connection ([asterisque.Intercept]) an attempt may use another session than the one before.
// At a node all attempts use the same session, which helps against overload only.
func Retry(r *asterisque.Retry) asterisque.Interceptor {
	if r == nil {
		panic("interceptors: Retry(nil): give it a *asterisque.Retry, such as new(asterisque.Retry)")
	}
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if c.Inbound() {
			return next(ctx, c)
		}
		return r.Do(ctx, func(ctx context.Context) error { return next(ctx, c) })
	}
}
