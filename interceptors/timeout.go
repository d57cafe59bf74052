package interceptors

import (
	"context"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque"
)

// Timeout gives calls that have no deadline a time of d, for both sides. On the calling side it
// travels with the call, as a deadline of the caller's context does. When it is over the context
// ends, of the call or of the handler, and the caller gets ErrExpired. It panics unless d is
// positive.
//
// A call that carries Blocks has that time for its whole life, on either side: where streams live
// long, put Timeout around the functions that do not, instead of the node. A stream that was opened
// with [asterisque.WithTTL] has the earlier of the two.
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
