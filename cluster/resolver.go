package cluster

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"sync"

	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// CallerOption says how a Caller for the nodes of a name chooses and reaches them.
type CallerOption func(*calling)

// calling is what options say.
type calling struct {
	pool     pool.Config
	identity string
	near     bool
	only     func(Member) bool
}

// WithPool says how the [pool.Pool] behaves: its subset, budget, health and so on. Dial of it is
// not used.
func WithPool(how pool.Config) CallerOption { return func(c *calling) { c.pool = how } }

// WithIdentity says what the certificates of the nodes have to prove, if that is not the name that
// is called. Without [Config].TLS it means nothing.
func WithIdentity(identity string) CallerOption {
	return func(c *calling) { c.identity = identity }
}

// WithNear lets only nodes of this node's region be called, as long as one of them takes calls.
func WithNear() CallerOption { return func(c *calling) { c.near = true } }

// WithOnly lets only those nodes be called for which only returns true. It is called from one
// goroutine at a time, again and again, and must not block.
func WithOnly(only func(Member) bool) CallerOption { return func(c *calling) { c.only = only } }

// Caller returns a Pool over the nodes that are joined with a name, whichever these are at the
// time: calls are spread over them, go elsewhere when one drains or is lost, and wait, within their
// contexts, while nobody is there. At of the Pool takes ids of nodes, and so does what else speaks
// of URLs there.
//
// A node that says where it can be dialled is dialled there, and through NATS otherwise, or when
// none of its addresses answers. With [Config].TLS it has to prove that it is of the name. While
// NATS is away the last nodes stay, and their direct sessions go on.
//
// Caller returns at once; life governs the Pool, which else lives until its Close, or that of the
// Cluster. The nodes of a name are watched as long as a Pool, or [Cluster.Watch], needs them. Of
// more than 1,024 nodes, a Pool takes as many, other ones in each node. The error says what is
// wrong with the name.
func (c *Cluster) Caller(life context.Context, name string, opts ...CallerOption) (*pool.Pool, error) {
	v, leave, err := c.ofName(name)
	if err != nil {
		return nil, err
	}
	return c.callerOf(life, v, leave, slices.Concat([]CallerOption{WithIdentity(name)}, opts))
}

// At is [Cluster.Caller] for the one node with an id, whatever its name. Unless [WithIdentity] says
// otherwise it has to prove the identity that it says it has, for the NATS servers to be trusted.
func (c *Cluster) At(life context.Context, id string, opts ...CallerOption) (*pool.Pool, error) {
	if !token.MatchString(id) {
		return nil, fmt.Errorf("cluster: no node can have the id %q: it has 1 to 64 letters, digits, '-' and '_'", id)
	}
	v, leave := c.of("*." + id)
	return c.callerOf(life, v, leave, opts)
}

func (c *Cluster) callerOf(life context.Context, v *view, leave func(), opts []CallerOption) (*pool.Pool, error) {
	r := &route{cluster: c, view: v}
	for _, o := range opts {
		o(&r.calling)
	}
	life, unbind := c.bind(life)
	r.leave = func() {
		unbind()
		leave()
	}
	r.ways = ways{cluster: c, identity: r.calling.identity, all: make(map[string]way)}
	how := r.calling.pool
	how.Connection.Background, how.Dial = true, r.dial
	p, err := pool.New(life, c.node, r.resolve, how)
	if err != nil {
		r.leave()
	}
	return p, err
}

// bind returns a context that ends with life, with this side's part in the cluster, or by unbind.
func (c *Cluster) bind(life context.Context) (bound context.Context, unbind func()) {
	bound, end := context.WithCancelCause(life)
	stop := context.AfterFunc(c.ctx, func() { end(c.Err()) })
	return bound, func() {
		stop()
		end(nil)
	}
}

// route leads a Pool to the nodes of a view.
type route struct {
	cluster *Cluster // these are fixed
	view    *view
	leave   func() // for when the view is needed no more
	calling calling
	ways    ways // locks itself

	mu      sync.Mutex
	members map[string]Member // of the last set, by id; guarded by mu
}

// dial makes the Wire to a node for the Pool.
func (r *route) dial(ctx context.Context, a pool.Address) (wire.Wire, error) {
	r.mu.Lock()
	m, ok := r.members[a.ID]
	r.mu.Unlock()
	if !ok {
		return nil, ErrNoMember // it has left, and the Pool is about to know
	}
	return r.ways.dial(ctx, m)
}

// mostMembers is how many nodes a Pool takes.
const mostMembers = 1024

// resolve is a pool.Resolver.
func (r *route) resolve(ctx context.Context) iter.Seq2[[]pool.Address, error] {
	return func(yield func([]pool.Address, error) bool) {
		defer func() {
			if ctx.Err() != nil {
				r.leave()
			}
		}()
		var last []pool.Address
		var told error
		for {
			changed := r.view.changed.Next()
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
				<-ctx.Done() // which follows
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// set returns the nodes for calls, or why there are none; neither, if that is not known yet.
func (r *route) set() ([]pool.Address, error) {
	all, looked := r.view.all()
	if !looked {
		return nil, r.view.err()
	}
	members := r.choose(all)
	if len(members) == 0 {
		return nil, fmt.Errorf("%w: %s; it is in use as soon as one joins", ErrNoMember, r.view.filter)
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

// know takes what is known of the nodes of a set.
func (r *route) know(members map[string]Member) {
	r.mu.Lock()
	r.members = members
	r.mu.Unlock()
	r.ways.keep(members)
}

// choose returns the nodes to call: those that drain only if there is nobody else.
func (r *route) choose(all []Member) []Member {
	own := r.cluster.cfg
	var members []Member
	for _, m := range all {
		if r.calling.only == nil || r.calling.only(m) {
			members = append(members, m)
		}
	}
	members = preferred(members, func(m Member) bool { return m.State != Draining })
	if r.calling.near && own.Region != "" {
		members = preferred(members, func(m Member) bool { return m.Region == own.Region })
	}
	members = latest(members)
	if len(members) > mostMembers {
		slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(rank(own.ID, a.ID), rank(own.ID, b.ID)) })
		members = members[:mostMembers]
	}
	return members
}

// preferred returns those that fit, or all if none does.
func preferred(members []Member, fits func(Member) bool) []Member {
	some := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !fits(m) })
	if len(some) == 0 {
		return members
	}
	return some
}

// latest leaves one of each id, which two names may have: the one that came last.
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

// rank is by which each node takes other ones of too many.
func rank(of, id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(of + "." + id))
	return h.Sum64()
}
