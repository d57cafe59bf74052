package interceptors

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// RatePerFunction limits the calls of each function per second, over all peers, on the side or
// sides that it stands on: limit on average, and burst at once. rate.Every converts an interval to
// a limit. A call above the limit is rejected with ErrOverloaded before it runs. The error contains
// the time until there is room again ([asterisque.RetryAfter]), which [Retry] respects. A nested
// call counts as well. A stream counts once. If one handler serves many functions
// ([asterisque.Service.HandleUnknown]), each number has a rate of its own. RatePerFunction panics
// unless limit is positive and burst at least 1.
func RatePerFunction(limit rate.Limit, burst int) asterisque.Interceptor {
	checkRate("RatePerFunction", limit, burst)
	var functions sync.Map // *rate.Limiter by function number: at most 65536
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		l, ok := functions.Load(c.Function())
		if !ok {
			l, _ = functions.LoadOrStore(c.Function(), rate.NewLimiter(limit, burst))
		}
		if err := take(l.(*rate.Limiter), time.Now(), "this function"); err != nil {
			return c.Refuse(err)
		}
		return next(ctx, c)
	}
}

func checkRate(what string, limit rate.Limit, burst int) {
	switch {
	case !(limit > 0): // rejects NaN, too
		panic(fmt.Sprintf("interceptors: %s: a rate of %v calls in a second admits no call: it has to be positive", what, limit))
	case burst < 1:
		panic(fmt.Sprintf("interceptors: %s: a burst of %d calls admits no call: it has to be at least 1", what, burst))
	}
}

// take takes one call of the budget of l, or returns an error with the time until one is available.
func take(l *rate.Limiter, now time.Time, whose string) error {
	if l.AllowN(now, 1) {
		return nil
	}
	// Reservation would return the delay, but concurrent cancellations would cost other callers
	// tokens
	wait := (1 - l.TokensAt(now)) / float64(l.Limit())
	advice := time.Duration(min(wait, time.Hour.Seconds()) * float64(time.Second))
	return codec.OverloadedFor(max(advice, 0), fmt.Sprintf("%s is called more often than %v times in a second, and %d at once", whose, l.Limit(), l.Burst()))
}
