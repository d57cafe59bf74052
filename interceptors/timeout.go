package interceptors

import (
	"context"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque"
)

// Timeout gives calls without a deadline a time of d, on both sides. On the calling side it travels
// with the call, like a deadline of the caller's context. When it expires, the context of the call
// or of the handler ends, and the caller gets ErrExpired. It panics unless d is positive.
//
// The time of a call that carries Blocks includes the whole life of its pipe, on either side. If a
// node has long streams, put Timeout around the other functions instead of the node. A stream that
// was opened with [asterisque.WithTTL] has the earlier of the two deadlines.
func Timeout(d time.Duration) asterisque.Interceptor {
	if d <= 0 {
		panic(fmt.Sprintf("interceptors: Timeout(%v): a time has to be positive", d))
	}
	cause := asterisque.ErrExpired.Withf("it came without a deadline, and its %v are over", d)
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if _, has := ctx.Deadline(); has {
			return next(ctx, c)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, d, cause)
		return toTheEnd(ctx, c, next, func(error) { cancel() })
	}
}
