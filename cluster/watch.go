package cluster

import (
	"context"
	"fmt"
	"iter"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// of returns the view of a filter of keys, and a function that releases it.
func (c *Cluster) of(filter string) (v *view, leave func()) {
	return c.views.join(c.ctx, filter, func() *view {
		return newView(c.nc, c.buckets.nodes, filter, c.cfg.times.life, &c.again, c.node.Logger())
	})
}

// ofName is of for the nodes of a name.
func (c *Cluster) ofName(name string) (v *view, leave func(), err error) {
	if !kv.IsToken(name) {
		return nil, nil, fmt.Errorf("cluster: no node can have the name %q: it has 1 to 64 letters, digits, '-' and '_'", name)
	}
	v, leave = c.of(name + ".*")
	return v, leave, nil
}

// Members returns the nodes of a name, in the order of their ids. An empty result is not an error.
// It waits for NATS, at most 5 seconds and until ctx ends, unless the name is already in use on
// this node: then it returns the last known nodes, also during an outage of NATS.
func (c *Cluster) Members(ctx context.Context, name string) ([]Member, error) {
	v, leave, err := c.ofName(name)
	if err != nil {
		return nil, err
	}
	defer leave()
	for {
		changed := v.changed.Next()
		members, looked := v.all()
		if err := c.Err(); err != nil {
			return nil, err
		}
		if looked {
			return members, nil
		}
		if err := v.err(); err != nil {
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
		v, leave, err := c.ofName(name)
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer leave()
		w := watcher{view: v, known: make(map[string]Member)}
		for {
			changed := v.changed.Next()
			if c.Err() != nil || !w.tell(yield) {
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

// watcher turns the state of a view into changes.
type watcher struct {
	view  *view
	known map[string]Member // last yielded state, by key
	told  error             // last yielded error
}

// tell yields the changes since the last call, and reports whether to continue.
func (w *watcher) tell(yield func(Change, error) bool) bool {
	if err := w.view.err(); err != w.told {
		if w.told = err; err != nil && !yield(Change{}, err) {
			return false
		}
	}
	members, _ := w.view.all()
	there := make(map[string]bool, len(members))
	for _, m := range members {
		there[m.key()] = true
		was, known := w.known[m.key()]
		w.known[m.key()] = m
		if kind := changeOf(was, known, m); kind != "" && !yield(Change{kind, m}, nil) {
			return false
		}
	}
	for key, m := range w.known {
		if there[key] {
			continue
		}
		delete(w.known, key)
		if !yield(Change{w.view.howGone(key), m}, nil) {
			return false
		}
	}
	return true
}

// changeOf returns the kind of a node's change, or "".
func changeOf(was Member, known bool, m Member) Kind {
	switch {
	case !known || was.Instance != m.Instance:
		return Joined
	case m.State == Draining && was.State != Draining:
		return Drains
	case was.revision != m.revision && string(was.encode()) != string(m.encode()):
		return Changed
	}
	return ""
}
