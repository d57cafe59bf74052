package agent

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// CallerOption says how a Caller for the nodes of a name chooses them.
type CallerOption func(*calling)

// calling is what options say.
type calling struct {
	pool     pool.Config
	identity string
	only     func(Member) bool
}

// WithPool says how the [pool.Pool] behaves: its subset, budget, health and so on. Dial of it is
// not used.
func WithPool(how pool.Config) CallerOption { return func(c *calling) { c.pool = how } }

// WithIdentity lets only nodes be called that have proved an identity to the exchange.
func WithIdentity(identity string) CallerOption { return func(c *calling) { c.identity = identity } }

// WithOnly lets only those nodes be called for which only returns true. It is called from one
// goroutine at a time, again and again, and must not block.
func WithOnly(only func(Member) bool) CallerOption { return func(c *calling) { c.only = only } }

// Caller returns a Pool over the nodes that have a name and that this node may reach, whichever
// these are at the time: calls are spread over them, go elsewhere when one drains or is lost, and
// wait, within their contexts, while nobody is there. At of the Pool takes ids of nodes, and so
// does what else speaks of URLs there. Without [WithIdentity] every node of the name is called:
// the exchange keeps a name for one identity at a time.
//
// Caller returns at once; life governs the Pool, which else lives until its Close, or that of the
// Agent. While the exchange is away the last nodes stay, and calls wait. The Pools of an agent can
// be for 64 names at once, with any number of Pools for each. The error says what is wrong with the
// name.
func (a *Agent) Caller(life context.Context, name string, opts ...CallerOption) (*pool.Pool, error) {
	if !outer.IsToken(name) {
		return nil, fmt.Errorf("agent: no node can have the name %q: it has 1 to 64 letters, digits, '-' and '_'", name)
	}
	r := &route{agent: a, name: name}
	for _, o := range opts {
		o(&r.calling)
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

// At is [Agent.Caller] for the one node with a name and an id.
func (a *Agent) At(life context.Context, name, id string, opts ...CallerOption) (*pool.Pool, error) {
	if !outer.IsToken(id) {
		return nil, fmt.Errorf("agent: no node can have the id %q: it has 1 to 64 letters, digits, '-' and '_'", id)
	}
	only := WithOnly(func(m Member) bool { return m.ID == id })
	return a.Caller(life, name, append(slices.Clip(opts), only)...)
}

// route leads a Pool to the nodes of a name.
type route struct {
	agent   *Agent // these are fixed
	name    string
	calling calling
	leave   func() // for when the Pool is closed
}

// how returns how the Pool behaves.
func (r *route) how() pool.Config {
	how := r.calling.pool
	how.Connection.Background = true
	how.Dial = func(ctx context.Context, to pool.Address) (wire.Wire, error) {
		return r.agent.dial(ctx, r.name, to.ID)
	}
	return how
}

// resolve is a pool.Resolver.
func (r *route) resolve(ctx context.Context) iter.Seq2[[]pool.Address, error] {
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

// tell tells the Pool what is known, and reports whether it wants more.
func (r *route) tell(w *watch, yield func([]pool.Address, error) bool) bool {
	members, known, err := w.now()
	switch {
	case err != nil:
		return yield(nil, fmt.Errorf("agent: who is there as %s is not known: %w", r.name, err))
	case known:
		return yield(r.set(members))
	}
	return true
}

// set returns the nodes for calls, or why there are none: those that drain only if there is nobody
// else.
func (r *route) set(members []Member) ([]pool.Address, error) {
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
func (r *route) fits(m Member) bool {
	c := r.calling
	return (c.identity == "" || c.identity == m.Identity) && (c.only == nil || c.only(m))
}
