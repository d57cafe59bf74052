package pool

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// Result is the answer of one server.
type Result[R any] struct {
	URL   string // of the server, as yielded by the Resolver
	Value R
	Err   error // nil if Value is valid
}

// mostAtOnce is the maximum number of servers that [All] calls at the same time.
const mostAtOnce = 100

// All makes one call on each server of the Resolver's set, at most 100 at the same time, and
// returns all results in the order of their URLs. All runs each call on a goroutine of its own,
// with a Caller for one server as returned by [Pool.At]:
//
//	pool.All(ctx, p, func(ctx context.Context, on asterisque.Caller) (Stats, error) {
//		return stats.Call(ctx, on, query)
//	})
//
// All blocks until call has returned for every server. The call of an unreachable server blocks
// until ctx ends, or fails at once with [asterisque.WithFailFast]. An error of one server does not
// end the calls of other servers.
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

// errMisbehaved is the result of a call function that has panicked, or ended its goroutine.
var errMisbehaved = asterisque.ErrPanicked.Withf("the function given to pool.All did not return: the log says why")
