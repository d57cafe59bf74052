package exchange

import (
	"context"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
)

const (
	// mostMembers is how many nodes of one name a node is told.
	mostMembers = 1024

	// atOnce is how many nodes a message has, each of which has some 5 KiB at most.
	atOnce = 64
)

// members tells a node who has a name, of those that it may reach, until it wants no more.
func (x *Exchange) members(ctx context.Context, name string, p *asterisque.Pipe[outer.Changes, struct{}]) (none struct{}, err error) {
	r, err := x.registered(ctx)
	if err != nil {
		return none, err
	}
	if !outer.IsToken(name) {
		return none, outer.ErrNoMember.Withf("no node can have the name %.80q", name)
	}
	if !r.watched.enter() {
		return none, full("this node watches %d names already, and no more are allowed at once", names)
	}
	defer r.watched.leave()
	return none, x.tellMembers(ctx, name, r, p)
}

// tellMembers tells a node who has a name, and each time that this changes.
func (x *Exchange) tellMembers(ctx context.Context, name string, r *registrant, p *asterisque.Pipe[outer.Changes, struct{}]) error {
	g, leave := x.nodes.use(name)
	defer leave()
	t := teller{p: p, known: make(map[string]uint64)}
	for {
		changed := g.changed.Next()
		if err := t.tell(ctx, x.reachable(r.member.Identity, x.nodes.all(g))); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-asterisque.Draining(ctx):
			return outer.ErrGoes
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// registered returns the node that has made a call.
func (x *Exchange) registered(ctx context.Context) (*registrant, error) {
	if r := x.nodes.of(asterisque.SessionOf(ctx)); r != nil {
		return r, nil
	}
	return nil, outer.ErrUnregistered
}

// reachable returns those nodes which an identity may reach.
func (x *Exchange) reachable(from string, all map[string]versioned) map[string]versioned {
	for id, m := range all {
		if !x.policy.allows(from, m.Identity) {
			delete(all, id)
		}
	}
	return all
}

// teller tells one node what has changed.
type teller struct {
	p     *asterisque.Pipe[outer.Changes, struct{}]
	known map[string]uint64 // the version that was told, by id
	begun bool              // something was told
}

// tell tells how the nodes that are there differ from those that were told. If they do not, it is
// silent, as when a node has come that the other side must not know of.
func (t *teller) tell(ctx context.Context, all map[string]versioned) error {
	gone, there := t.gone(all), t.there(all)
	if t.begun && len(gone)+len(there) == 0 {
		return nil
	}
	t.begun = true
	for {
		n := min(len(there), atOnce)
		c := outer.Changes{There: there[:n], Gone: gone, All: n == len(there)}
		if err := t.p.Send(ctx, c); err != nil || c.All {
			return err
		}
		gone, there = nil, there[n:]
	}
}

// gone forgets the nodes that were told and are there no more, and returns their ids.
func (t *teller) gone(all map[string]versioned) (ids []string) {
	for id := range t.known {
		if _, ok := all[id]; !ok {
			delete(t.known, id)
			ids = append(ids, id)
		}
	}
	return ids
}

// there notes the nodes that were not told as they are now, and returns them.
func (t *teller) there(all map[string]versioned) (news []outer.Member) {
	for id, m := range all {
		version, known := t.known[id]
		if known && version == m.version || !known && len(t.known) == mostMembers {
			continue
		}
		t.known[id] = m.version
		news = append(news, m.Member)
	}
	return news
}
