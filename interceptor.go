package asterisque

import (
	"context"
	"fmt"
)

// Interceptor is code around calls: around those that this side makes, those that it serves, or
// both; [Call].Served tells which. It sees what a call carries before and after it calls on to
// next, and may change it. What it returns is the outcome of the call: the error that next
// returned, another one, or nil for a result of its own ([Call].SetResult).
//
//	func timed(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
//		begin := time.Now()
//		err := next(ctx, c)
//		slog.Info("call", "function", c.Name(), "served", c.Served(), "took", time.Since(begin), "error", err)
//		return err
//	}
//
// The context that it passes on has to be derived from ctx: on the serving side the handler gets
// it. An interceptor may answer without calling on. Of a call that this side makes it may call on
// more than once, one time after the other; one that is served runs once. What an interceptor
// changes of the parameters, and what it puts around Blocks, those within it see: when others call
// on again, it gets the call without that, and makes its changes again. For a durable call it makes
// the same ones, since a peer refuses a repetition with other parameters.
//
// An interceptor returns when the call is over for it: next fails later, and c is not to be used
// any more. It waits for a next that it calls on another goroutine, as those within use c. If it
// does not, the call ends when the handler has returned, or the peer has answered.
//
// Around a call that carries Blocks, next returns on the serving side when the handler has
// returned, and on the calling side as soon as the pipe is open, whose life is the context that was
// passed on; see [Call].WrapBlocks for what follows.
//
// Interceptors run on the goroutine of the call, concurrently for different calls. One that panics
// fails its call with ErrPanicked, as those see it that are around it, and nothing else. One that
// ends its goroutine ([runtime.Goexit]) does the same on the serving side; on the calling side it
// is the goroutine of the caller that ends.
//
// Interceptors stand around a call in this order, from the outside: on the calling side those of
// the call ([WithCallInterceptors]), those of the Caller ([Intercept]), those of the node
// ([WithMadeInterceptors]); on the serving side those of the node ([WithServedInterceptors]), those
// of the service ([Service.Intercept]), those of the function ([WithFunctionInterceptors]). Where
// several are named, the first is the outermost. Those of a node have a session; on a [Connection]
// they are around each attempt of a call, the outer ones around all of them.
type Interceptor func(ctx context.Context, c *Call, next Next) error

// Next calls on: to the next interceptor, and at last to the peer, or to the handler.
type Next func(ctx context.Context, c *Call) error

// chain returns what calls the interceptors, the first outermost, and last within them.
func chain(around []Interceptor, last Next) Next {
	for i := len(around) - 1; i >= 0; i-- {
		last = around[i].before(last)
	}
	return last
}

// before returns i around next.
func (i Interceptor) before(next Next) Next {
	return func(ctx context.Context, c *Call) (err error) {
		returned, params := false, c.enter()
		defer func() {
			c.leave(params)
			if returned {
				return
			}
			if v := recover(); v != nil || !c.lost {
				c.lost = v == nil // and others are around it, which need not log it again
				err = c.side.misbehaved(v)
			}
		}()
		err = i(ctx, c, next)
		returned = true
		return err
	}
}

// carryOut is the end of a chain.
func carryOut(ctx context.Context, c *Call) error { return c.carryOut(ctx) }

// checkInterceptors panics if one of them is nil: what has been given it.
func checkInterceptors(what string, around []Interceptor) {
	for i, f := range around {
		if f == nil {
			panic(fmt.Sprintf("asterisque: %s at %s: interceptor %d of %d is nil: leave it out", what, here(), i+1, len(around)))
		}
	}
}
