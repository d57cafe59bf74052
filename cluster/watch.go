package cluster

import (
	"context"
	"fmt"
	"iter"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/presence"
)

// viewOf returns the view of the nodes of a name, and a function that releases it.
func viewOf(views *presence.Views, name string) (v *presence.View, leave func(), err error) {
	if !kv.IsToken(name) {
		return nil, nil, fmt.Errorf("cluster: no node can have the name %q: it has 1 to 64 letters, digits, '-' and '_'", name)
	}
	v, leave = views.Open(name + ".*")
	return v, leave, nil
}

// Members returns the nodes of a name, in the order of their ids. An empty result is not an error.
// It waits for NATS, at most 5 seconds and until ctx ends, unless the name is already in use on
// this node: then it returns the last known nodes, also during an outage of NATS.
func (c *Cluster) Members(ctx context.Context, name string) ([]Member, error) {
	v, leave, err := viewOf(c.views, name)
	if err != nil {
		return nil, err
	}
	defer leave()
	for {
		changed := v.Next()
		members, looked := v.Members()
		if err := c.Err(); err != nil {
			return nil, err
		}
		if looked {
			return membersOf(members), nil
		}
		if err := v.Err(); err != nil {
			return nil, fmt.Errorf("cluster: the nodes of the name %s are not known: %w", name, err)
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return nil, c.Err()
		case <-ctx.Done():
			return nil, fmt.Errorf("cluster: the nodes of the name %s are not known yet: %w", name, context.Cause(ctx))
		}
	}
}

// either returns a, or b if that is nil.
func either(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// Watch yields the changes of a name's members until ctx ends or the node leaves the cluster. The
// present ones are yielded as Joined first. A slow consumer gets fewer changes: a node that has
// joined and left between two changes is omitted, and only the last of several changes of one node
// is yielded. If NATS cannot be asked, Watch yields an error with an empty Change, and continues
// with the members unchanged.
//
// It runs as long as the loop does, and may be used again, also concurrently.
func (c *Cluster) Watch(ctx context.Context, name string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		v, leave, err := viewOf(c.views, name)
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer leave()
		w := presence.NewWatcher(v)
		public := func(c presence.Change, err error) bool {
			if err != nil {
				return yield(Change{}, err)
			}
			return yield(Change{Kind(c.Kind), memberOf(c.Member)}, nil)
		}
		for {
			changed := v.Next()
			if c.Err() != nil || !w.Yield(public) {
				return
			}
			select {
			case <-changed:
			case <-c.ctx.Done():
				return
			case <-ctx.Done():
				return
			}
		}
	}
}
