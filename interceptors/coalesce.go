package interceptors

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/asterisque-go/asterisque"
)

// Coalesce runs one of several equal concurrent calls and gives its outcome to all of them, on both
// sides. It is for functions with a result that does not depend on the caller. The function must
// not make an equal call itself, which would wait for its own end.
//
// Calls are equal if they have the same function, handler, session, parameter bytes, priority and
// metadata: a request id in the metadata keeps calls apart. A call that is canceled or expires ends
// alone: if it was the running one, one of the waiting calls runs next. A call that has waited
// twice in vain runs by itself, so that repeated cancels cannot block other calls. Trace contexts
// may differ: a tracing interceptor sees each call, and only one of them continue. On the serving
// side, waiting calls occupy their workers.
//
// Calls that carry Blocks pass unchanged, which includes all untyped served calls. So do durable
// calls, and calls around a Connection, where the session is not known.
func Coalesce() asterisque.Interceptor { return newCoalescer(false).intercept }

// CoalesceAcrossPeers is like [Coalesce], but on the serving side calls of different sessions may
// be equal as well, if they have the same value codec, node and handler. A peer then gets the
// result or error that the handler has returned to another peer. The function must not depend on
// the identity of its caller. A value that must keep calls apart has to be in their parameters or
// their metadata.
func CoalesceAcrossPeers() asterisque.Interceptor { return newCoalescer(true).intercept }

type coalescer struct {
	across bool // fixed

	mu      sync.Mutex
	running map[callKey]*sharedCall // guarded by mu, as each flight until it is over
}

// sharedCall is one running call. Other calls may share its outcome.
type sharedCall struct {
	others bool          // another call waits
	over   chan struct{} // closed at the end; the other fields are fixed then
	lost   bool          // it ended for a reason that concerns only its own caller
	result []byte
	err    error
}

// mostInVain bounds how often a call waits for a flight that is then lost.
const mostInVain = 2

func newCoalescer(across bool) *coalescer {
	return &coalescer{across: across, running: make(map[callKey]*sharedCall)}
}

func (g *coalescer) intercept(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if c.Blocks() || c.Durable() || c.Session() == nil {
		return next(ctx, c)
	}
	params, err := c.RawParams()
	if err != nil {
		return next(ctx, c) // next reports the error
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

// join returns the running call of that key. If there is none, first is true, and the caller has to
// call fly.
func (g *coalescer) join(key callKey) (f *sharedCall, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f = g.running[key]
	if f != nil {
		f.others = true
		return f, false
	}
	f = &sharedCall{over: make(chan struct{}), lost: true}
	g.running[key] = f
	return f, true
}

// fly runs the call of f.
func (g *coalescer) fly(ctx context.Context, c *asterisque.Call, next asterisque.Next, key callKey, f *sharedCall) (err error) {
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

// leave removes f, so that no more calls join it, and reports whether a call has joined.
func (g *coalescer) leave(key callKey, f *sharedCall) (others bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, key)
	return f.others
}

// land stores the outcome of c for the waiting calls, unless it concerns only its own caller.
func (f *sharedCall) land(ctx context.Context, c *asterisque.Call, err error) {
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
