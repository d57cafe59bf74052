package exchange

import (
	"context"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
)

const (
	// mostMembers is the maximum number of nodes of one name that a node receives.
	mostMembers = 1024

	// atOnce is the number of nodes in a message, each of at most about 5 KiB.
	atOnce = 64
)

// members sends the nodes of a name that the caller may reach, until the call ends.
func (x *Exchange) members(ctx context.Context, name string, p *asterisque.Pipe[relayproto.Changes, struct{}]) (none struct{}, err error) {
	r, err := x.registered(ctx)
	if err != nil {
		return none, err
	}
	if !relayproto.IsToken(name) {
		return none, relayproto.ErrNoMember.Withf("no node can have the name %.80q", name)
	}
	if !r.watched.enter() {
		return none, full("this node watches %d names already, and no more are allowed at once", names)
	}
	defer r.watched.leave()
	return none, x.tellMembers(ctx, name, r, p)
}

// tellMembers sends the nodes of a name, and each change.
func (x *Exchange) tellMembers(ctx context.Context, name string, r *registeredNode, p *asterisque.Pipe[relayproto.Changes, struct{}]) error {
	g, leave := x.nodes.use(name)
	defer leave()
	t := changeNotifier{p: p, known: make(map[string]uint64)}
	for {
		changed := g.changed.Next()
		if err := t.tell(ctx, x.reachable(r.member.Identity, x.nodes.all(g))); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-asterisque.Draining(ctx):
			return relayproto.ErrGoes
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// registered returns the node that has made a call.
func (x *Exchange) registered(ctx context.Context) (*registeredNode, error) {
	if r := x.nodes.of(asterisque.SessionOf(ctx)); r != nil {
		return r, nil
	}
	return nil, relayproto.ErrUnregistered
}

// reachable removes the nodes that an identity may not reach, and returns the rest.
func (x *Exchange) reachable(from string, all map[string]nodeVersion) map[string]nodeVersion {
	for id, m := range all {
		if !x.policy.allows(from, m.Identity) {
			delete(all, id)
		}
	}
	return all
}

// changeNotifier sends the changes of nodes to one node.
type changeNotifier struct {
	p     *asterisque.Pipe[relayproto.Changes, struct{}]
	known map[string]uint64 // the last sent version, by id
	begun bool              // a message was sent
}

// tell sends the differences between the present nodes and the last sent ones. Without a difference
// it sends nothing, for example when a node has joined that the receiver may not reach.
func (t *changeNotifier) tell(ctx context.Context, all map[string]nodeVersion) error {
	gone, there := t.gone(all), t.there(all)
	if t.begun && len(gone)+len(there) == 0 {
		return nil
	}
	t.begun = true
	for {
		n := min(len(there), atOnce)
		c := relayproto.Changes{There: there[:n], Gone: gone, All: n == len(there)}
		if err := t.p.Send(ctx, c); err != nil || c.All {
			return err
		}
		gone, there = nil, there[n:]
	}
}

// gone forgets sent nodes that are no longer present, and returns their ids.
func (t *changeNotifier) gone(all map[string]nodeVersion) (ids []string) {
	for id := range t.known {
		if _, ok := all[id]; !ok {
			delete(t.known, id)
			ids = append(ids, id)
		}
	}
	return ids
}

// there records new and changed nodes as sent, and returns them.
func (t *changeNotifier) there(all map[string]nodeVersion) (news []relayproto.Member) {
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
