package interceptors

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/asterisque-go/asterisque"
)

// Coalesce makes equal calls that come while one of them runs only once, and gives all of them its
// outcome, for both sides. It is for functions whose result does not depend on who asks, and that
// lead to no equal call of themselves: that would wait for its own end.
//
// Equal are calls of one function, with one handler, on one session with the same parameters, as
// bytes, the same priority and the same metadata: an id of the request there keeps calls apart. A
// call that gives up, or whose time is over, gives up only itself: if it was the one that ran, the
// next of those that wait runs. One that has waited twice in vain runs by itself, so that whoever
// gives up again and again holds nobody up. Trace contexts need not be the same; who follows the
// calls sees each, and one of them go on. On the serving side calls that wait keep their workers.
//
// Calls that carry Blocks, as all untyped ones do that are served, and durable ones pass as they
// are, and so do those around a Connection, which do not know their session.
func Coalesce() asterisque.Interceptor { return newCoalescer(false).intercept }

// CoalesceAcrossPeers is [Coalesce], but on the serving side calls of different sessions may be
// equal as well, if they have the same value codec, node and handler: a peer gets what the handler
// has answered to another one, error or result. The function must not look at who calls it, and
// what is to keep calls apart has to be in their parameters or their metadata.
func CoalesceAcrossPeers() asterisque.Interceptor { return newCoalescer(true).intercept }

type coalescer struct {
	across bool // fixed

	mu      sync.Mutex
	running map[callKey]*flight // guarded by mu, as what it points to, until that is over
}

// flight is a call that runs, for others as well.
type flight struct {
	others bool          // somebody waits
	over   chan struct{} // closed at its end; the rest is fixed then
	lost   bool          // it has ended for a reason that is nobody else's
	result []byte
	err    error
}

// mostInVain bounds how often a call waits for one that then gives up.
const mostInVain = 2

func newCoalescer(across bool) *coalescer {
	return &coalescer{across: across, running: make(map[callKey]*flight)}
}

func (g *coalescer) intercept(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if c.Blocks() || c.Durable() || c.Session() == nil {
		return next(ctx, c)
	}
	params, err := c.RawParams()
	if err != nil {
		return next(ctx, c) // which says why
	}
	key := keyOf(ctx, c, params, g.across)
	for range mostInVain {
		f, first := g.join(key)
		if first {
			return g.fly(ctx, c, next, key, f)
		}
		select {
		case <-f.over:
		case <-ctx.Done():
			return c.Refuse(ctx.Err())
		}
		switch {
		case f.lost:
		case f.err != nil:
			return f.err
		default:
			c.SetRawResult(bytes.Clone(f.result))
			return nil
		}
	}
	return next(ctx, c)
}

// join returns the call of that key that runs. If there is none, first is true, and it is up to the
// caller to fly.
func (g *coalescer) join(key callKey) (f *flight, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f = g.running[key]
	if f != nil {
		f.others = true
		return f, false
	}
	f = &flight{over: make(chan struct{}), lost: true}
	g.running[key] = f
	return f, true
}

// fly makes the call that f is.
func (g *coalescer) fly(ctx context.Context, c *asterisque.Call, next asterisque.Next, key callKey, f *flight) (err error) {
	defer close(f.over)
	returned := false
	defer func() {
		if g.leave(key, f) && returned {
			f.land(ctx, c, err)
		}
	}()
	err = next(ctx, c)
	returned = true
	return err
}

// leave lets nobody join f any more, and reports whether somebody has.
func (g *coalescer) leave(key callKey, f *flight) (others bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, key)
	return f.others
}

// land leaves the outcome of c to the others, unless it is nobody else's.
func (f *flight) land(ctx context.Context, c *asterisque.Call, err error) {
	_, timed := ctx.Deadline()
	if err != nil && (ctx.Err() != nil || timed && errors.Is(err, asterisque.ErrExpired)) {
		return
	}
	if err == nil {
		result, unencoded := c.RawResult()
		if unencoded != nil {
			return
		}
		f.result = bytes.Clone(result)
	}
	f.err, f.lost = err, false
}
