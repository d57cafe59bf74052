package pool

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// Result is what one server has answered.
type Result[R any] struct {
	URL   string // of the server, as the Resolver names it
	Value R
	Err   error // nil if Value counts
}

// mostAtOnce is how many servers [All] calls at the same time.
const mostAtOnce = 100

// All makes one call on each server that the Resolver names, at most 100 at the same time, and
// returns all results in the order of their URLs. call is given a Caller for one server, as
// [Pool.At] returns it, on a goroutine of its own:
//
//	pool.All(ctx, p, func(ctx context.Context, on asterisque.Caller) (Stats, error) {
//		return stats.Call(ctx, on, query)
//	})
//
// All waits until call has returned for every server: a server that is away takes as long as ctx,
// or with [asterisque.WithFailFast] no time. An error of one server ends none of the others.
func All[R any](ctx context.Context, p *Pool, call func(ctx context.Context, on asterisque.Caller) (R, error)) []Result[R] {
	urls := p.members.sorted()
	results := make([]Result[R], len(urls))
	var all errgroup.Group
	all.SetLimit(mostAtOnce)
	for i, url := range urls {
		all.Go(func() error {
			r := &results[i]
			r.URL, r.Err = url, errMisbehaved // until call returns
			guard.Run(p.node.Logger(), "the function given to pool.All", func() {
				r.Value, r.Err = call(ctx, p.At(url))
			})
			return nil
		})
	}
	all.Wait()
	return results
}

// errMisbehaved is the result of a call that has panicked, or ended its goroutine.
var errMisbehaved = asterisque.ErrPanicked.Withf("the function given to pool.All did not return: the log says why")
