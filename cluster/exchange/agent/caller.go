package agent

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// CallerOption sets one property of a Caller for the nodes of a name.
type CallerOption func(*callOptions)

// callOptions is the result of the options.
type callOptions struct {
	pool     pool.Config
	identity string
	only     func(Member) bool
}

// WithPool sets the configuration of the [pool.Pool]: its subset, budget, health and so on. Its
// Dial is not used.
func WithPool(how pool.Config) CallerOption { return func(c *callOptions) { c.pool = how } }

// WithIdentity restricts calls to nodes that have proved an identity to the exchange.
func WithIdentity(identity string) CallerOption {
	return func(c *callOptions) { c.identity = identity }
}

// WithOnly restricts calls to the nodes for which only returns true. It is called repeatedly, by
// one goroutine at a time, and must not block.
func WithOnly(only func(Member) bool) CallerOption { return func(c *callOptions) { c.only = only } }

// Caller returns a Pool over the present nodes of a name that this node may reach. Calls are
// balanced over them, move to other nodes when one drains or is lost, and block, within their
// contexts, while there is no node. At of the Pool takes ids of nodes in place of URLs, and so do
// its other methods. Without [WithIdentity] every node of the name is called: the exchange reserves
// a name for one identity at a time.
//
// Caller returns at once. life bounds the lifetime of the Pool, which otherwise lasts until its
// Close, or that of the Agent. During an outage of the exchange the last known nodes stay in use,
// and calls wait. The Pools of an agent can use 64 names at once, with any number of Pools for
// each. The error reports an invalid name.
func (a *Agent) Caller(life context.Context, name string, opts ...CallerOption) (*pool.Pool, error) {
	if !relayproto.IsToken(name) {
		return nil, fmt.Errorf("agent: no node can have the name %q: it has 1 to 64 letters, digits, '-' and '_'", name)
	}
	r := &nameRoute{agent: a, name: name}
	for _, o := range opts {
		o(&r.options)
	}
	life, end := context.WithCancelCause(life)
	stop := context.AfterFunc(a.ctx, func() { end(a.Err()) })
	r.leave = func() {
		stop()
		end(nil)
	}
	p, err := pool.New(life, a.node, r.resolve, r.how())
	if err != nil {
		r.leave()
	}
	return p, err
}

// At is like [Agent.Caller] for the one node with a name and an id.
func (a *Agent) At(life context.Context, name, id string, opts ...CallerOption) (*pool.Pool, error) {
	if !relayproto.IsToken(id) {
		return nil, fmt.Errorf("agent: no node can have the id %q: it has 1 to 64 letters, digits, '-' and '_'", id)
	}
	only := WithOnly(func(m Member) bool { return m.ID == id })
	return a.Caller(life, name, append(slices.Clip(opts), only)...)
}

// nameRoute connects a Pool to the nodes of a name.
type nameRoute struct {
	agent   *Agent // fixed, as all below
	name    string
	options callOptions
	leave   func() // called when the Pool is closed
}

// how returns the configuration of the Pool.
func (r *nameRoute) how() pool.Config {
	how := r.options.pool
	how.Connection.Background = true
	how.Dial = func(ctx context.Context, to pool.Address) (wire.Wire, error) {
		return r.agent.dial(ctx, r.name, to.ID)
	}
	return how
}

// resolve is the pool.Resolver of a route.
func (r *nameRoute) resolve(ctx context.Context) iter.Seq2[[]pool.Address, error] {
	return func(yield func([]pool.Address, error) bool) {
		defer func() {
			if ctx.Err() != nil {
				r.leave()
			}
		}()
		w, leave := r.agent.use(r.name)
		defer leave()
		for {
			changed := w.changed.Next()
			if !r.tell(w, yield) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// tell yields the present nodes to the Pool, and reports whether to continue.
func (r *nameRoute) tell(w *nameWatch, yield func([]pool.Address, error) bool) bool {
	members, known, err := w.now()
	switch {
	case err != nil:
		return yield(nil, fmt.Errorf("agent: the nodes of the name %s are not known: %w", r.name, err))
	case known:
		return yield(r.set(members))
	}
	return true
}

// set returns the nodes for calls, or the reason why there are none. Draining nodes are included
// only if there are no other nodes.
func (r *nameRoute) set(members []Member) ([]pool.Address, error) {
	fit := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !r.fits(m) })
	if some := slices.DeleteFunc(slices.Clone(fit), func(m Member) bool { return m.State == Draining }); len(some) > 0 {
		fit = some
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("%w: %s; it is in use as soon as one registers that this node may reach", ErrNoMember, r.name)
	}
	set := make([]pool.Address, len(fit))
	for i, m := range fit {
		set[i] = pool.Address{URL: m.ID, ID: m.ID}
		if m.Durable {
			set[i].Answers = m.Name
		}
	}
	return set, nil
}

// fits reports whether a node may be called.
func (r *nameRoute) fits(m Member) bool {
	c := r.options
	return (c.identity == "" || c.identity == m.Identity) && (c.only == nil || c.only(m))
}
