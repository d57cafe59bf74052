package cluster

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"sync"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/presence"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// CallerOption sets one property of a Caller for the nodes of a name.
type CallerOption func(*callOptions)

// callOptions is the result of the options.
type callOptions struct {
	pool     pool.Config
	identity string
	near     bool
	only     func(Member) bool
}

// WithPool sets the configuration of the [pool.Pool]: its subset, budget, health and so on. Its
// Dial is not used.
func WithPool(how pool.Config) CallerOption { return func(c *callOptions) { c.pool = how } }

// WithIdentity sets the name that the certificates of the nodes have to prove, if it differs from
// the called name. Without [Config].TLS it has no effect.
func WithIdentity(identity string) CallerOption {
	return func(c *callOptions) { c.identity = identity }
}

// WithNear restricts calls to nodes of this node's region, as long as one of them takes calls.
func WithNear() CallerOption { return func(c *callOptions) { c.near = true } }

// WithOnly restricts calls to the nodes for which only returns true. It is called repeatedly, by
// one goroutine at a time, and must not block.
func WithOnly(only func(Member) bool) CallerOption { return func(c *callOptions) { c.only = only } }

// Caller returns a Pool over the present nodes of a name. Calls are balanced over them, move to
// other nodes when one drains or is lost, and block, within their contexts, while there is no node.
// At of the Pool takes ids of nodes in place of URLs, and so do its other methods.
//
// A node with addresses is dialled there. Without addresses, or if none answers, it is dialled
// through NATS. With [Config].TLS it has to prove that it belongs to the name. During an outage of
// NATS the last known nodes stay in use, and their direct sessions continue.
//
// Caller returns at once. life bounds the lifetime of the Pool, which otherwise lasts until its
// Close, or that of the Cluster. The nodes of a name are watched as long as a Pool, or
// [Cluster.Watch], needs them. A Pool uses at most 1,024 nodes. Each node selects different ones.
// The error reports an invalid name.
func (c *Cluster) Caller(life context.Context, name string, opts ...CallerOption) (*pool.Pool, error) {
	v, leave, err := viewOf(c.views, name)
	if err != nil {
		return nil, err
	}
	return c.callerOf(life, v, leave, slices.Concat([]CallerOption{WithIdentity(name)}, opts))
}

// At is like [Cluster.Caller] for the one node with an id, under any name. Unless [WithIdentity] is
// set, the node has to prove the identity that it has announced itself, so the NATS servers have to
// be trusted.
func (c *Cluster) At(life context.Context, id string, opts ...CallerOption) (*pool.Pool, error) {
	if !kv.IsToken(id) {
		return nil, fmt.Errorf("cluster: no node can have the id %q: it has 1 to 64 letters, digits, '-' and '_'", id)
	}
	v, leave := c.views.Open("*." + id)
	return c.callerOf(life, v, leave, opts)
}

func (c *Cluster) callerOf(life context.Context, v *presence.View, leave func(), opts []CallerOption) (*pool.Pool, error) {
	r := &viewRoute{cluster: c, view: v}
	for _, o := range opts {
		o(&r.options)
	}
	life, unbind := bind(life, c.ctx)
	r.leave = func() {
		unbind()
		leave()
	}
	r.routes = peerRoutes{cluster: c, identity: r.options.identity, all: make(map[string]peerRoute)}
	how := r.options.pool
	how.Connection.Background, how.Dial = true, r.dial
	p, err := pool.New(life, c.node, r.resolve, how)
	if err != nil {
		r.leave()
	}
	return p, err
}

// bind returns a context that ends with life, with in, or when unbind is called. Then its cause is
// that of the one that has ended.
func bind(life, in context.Context) (bound context.Context, unbind func()) {
	bound, end := context.WithCancelCause(life)
	stop := context.AfterFunc(in, func() { end(context.Cause(in)) })
	return bound, func() {
		stop()
		end(nil)
	}
}

// viewRoute connects a Pool to the nodes of a view.
type viewRoute struct {
	cluster *Cluster // fixed, as all up to calling
	view    *presence.View
	leave   func() // releases the view
	options callOptions
	routes  peerRoutes // has its own lock

	mu      sync.Mutex
	members map[string]Member // of the last set, by id; guarded by mu
}

// dial makes the Wire to a node for the Pool.
func (r *viewRoute) dial(ctx context.Context, a pool.Address) (wire.Wire, error) {
	r.mu.Lock()
	m, ok := r.members[a.ID]
	r.mu.Unlock()
	if !ok {
		return nil, ErrNoMember // it has left, and the next set will be without it
	}
	return r.routes.dial(ctx, m)
}

// mostMembers is the maximum number of nodes of a Pool.
const mostMembers = 1024

// resolve is the pool.Resolver of a route.
func (r *viewRoute) resolve(ctx context.Context) iter.Seq2[[]pool.Address, error] {
	return func(yield func([]pool.Address, error) bool) {
		defer func() {
			if ctx.Err() != nil {
				r.leave()
			}
		}()
		var last []pool.Address
		var told error
		for {
			changed := r.view.Next()
			set, err := r.set()
			fresh := set != nil && !slices.Equal(set, last) || err != nil && (told == nil || told.Error() != err.Error())
			if set != nil {
				last = set
			}
			if told = err; fresh && !yield(set, err) {
				return
			}
			select {
			case <-changed:
			case <-r.cluster.ctx.Done():
				<-ctx.Done() // which ends next
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// set returns the nodes for calls, or the reason why there are none; neither before the first look.
func (r *viewRoute) set() ([]pool.Address, error) {
	all, looked := r.view.Members()
	if !looked {
		return nil, r.view.Err()
	}
	members := r.choose(membersOf(all))
	if len(members) == 0 {
		return nil, fmt.Errorf("%w: %s; it is in use as soon as one joins", ErrNoMember, r.view.Keys())
	}
	set := make([]pool.Address, len(members))
	byID := make(map[string]Member, len(members))
	for i, m := range members {
		set[i] = pool.Address{URL: m.ID, ID: m.ID}
		if m.Durable {
			set[i].Answers = m.Name
		}
		byID[m.ID] = m
	}
	r.know(byID)
	return set, nil
}

// know stores the nodes of a set.
func (r *viewRoute) know(members map[string]Member) {
	r.mu.Lock()
	r.members = members
	r.mu.Unlock()
	r.routes.keep(members)
}

// choose returns the nodes to call. Draining nodes are included only if there are no other nodes.
func (r *viewRoute) choose(all []Member) []Member {
	own := r.cluster.cfg
	var members []Member
	for _, m := range all {
		if r.options.only == nil || r.options.only(m) {
			members = append(members, m)
		}
	}
	members = preferred(members, func(m Member) bool { return m.State != Draining })
	if r.options.near && own.Region != "" {
		members = preferred(members, func(m Member) bool { return m.Region == own.Region })
	}
	members = latest(members)
	if len(members) > mostMembers {
		slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(rank(own.ID, a.ID), rank(own.ID, b.ID)) })
		members = members[:mostMembers]
	}
	return members
}

// preferred returns the members that fit, or all if none does.
func preferred(members []Member, fits func(Member) bool) []Member {
	some := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !fits(m) })
	if len(some) == 0 {
		return members
	}
	return some
}

// latest keeps one node of each id, which two names may have: the one that joined last.
func latest(members []Member) []Member {
	at := make(map[string]int, len(members))
	some := members[:0:0]
	for _, m := range members {
		i, twice := at[m.ID]
		switch {
		case !twice:
			at[m.ID] = len(some)
			some = append(some, m)
		case m.Since.After(some[i].Since):
			some[i] = m
		}
	}
	return some
}

// rank is the order by which each node selects its own part of too many nodes.
func rank(of, id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(of + "." + id))
	return h.Sum64()
}
