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

// RatePerFunction bounds how many calls of each function are served, or made, in a second, over all
// peers, on the side or sides that it stands on: limit on average, and burst at once. rate.Every
// makes a limit of an interval. What exceeds it is refused with ErrOverloaded before it runs, which
// tells the caller when there is room again ([asterisque.RetryAfter]); [Retry] heeds that. A call
// within another one counts as well, and that of a stream counts once. Where one handler serves
// many functions ([asterisque.Service.HandleOthers]) each number has a rate of its own. It panics
// unless limit is positive and burst at least 1.
func RatePerFunction(limit rate.Limit, burst int) asterisque.Interceptor {
	checkRate("RatePerFunction", limit, burst)
	var functions sync.Map // *rate.Limiter by number, of which there are 65536
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
	case !(limit > 0): // which NaN is not, either
		panic(fmt.Sprintf("interceptors: %s: a rate of %v calls in a second lets nothing through: it has to be positive", what, limit))
	case burst < 1:
		panic(fmt.Sprintf("interceptors: %s: a burst of %d calls lets nothing through: it has to be at least 1", what, burst))
	}
}

// take takes one call of what l allows, or returns an error that says when there is one.
func take(l *rate.Limiter, now time.Time, whose string) error {
	if l.AllowN(now, 1) {
		return nil
	}
	// a Reservation would know, but those that are given back at the same time cost others theirs
	wait := (1 - l.TokensAt(now)) / float64(l.Limit())
	advice := time.Duration(min(wait, time.Hour.Seconds()) * float64(time.Second))
	return codec.OverloadedFor(max(advice, 0), fmt.Sprintf("%s is called more often than %v times in a second, and %d at once", whose, l.Limit(), l.Burst()))
}
