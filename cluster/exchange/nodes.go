package exchange

import (
	"context"
	"maps"
	"sync"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// registrant is a registered node.
type registrant struct {
	session *asterisque.Session // fixed, as all of member but its state
	end     context.CancelCauseFunc
	relays  room // semaphore of its relayed sessions
	watched room // semaphore of its watched names

	draining chan struct{} // closed when the node drains
	gone     chan struct{} // closed when it is no longer registered or shown
	ousted   []*registrant // nodes that it has displaced; set by enter

	member  outer.Member // guarded by nodes.mu, as version
	version uint64       // of member
}

// nodes are the registered nodes.
type nodes struct {
	// keeps abroad and foreign of a group current until ctx ends; nil: without a cluster; fixed
	follow func(ctx context.Context, name string, g *group)

	mu        sync.Mutex
	bySession map[*asterisque.Session]*registrant // guarded by mu, as all below
	groups    map[string]*group                   // by name
	version   uint64                              // of the last change
}

// group is the nodes of one name. It exists while it has nodes or watchers.
type group struct {
	members map[string]*registrant // by id; guarded by nodes.mu, as all but changed
	abroad  map[string]versioned   // those in the cluster, while there are uses
	foreign map[string]versioned   // those in other domains; replaced as a whole
	uses    int                    // number of watchers
	stop    context.CancelFunc     // ends the updates of abroad and foreign
	changed wait.Notice
}

func newNodes() *nodes {
	return &nodes{bySession: make(map[*asterisque.Session]*registrant), groups: make(map[string]*group)}
}

// enter registers a node, replacing one of the same name, id and identity.
func (n *nodes) enter(r *registrant) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bySession[r.session] != nil {
		return outer.ErrBadRegistration.Withf("this session has registered already, and registers one node")
	}
	if r.member.Name != "" {
		if err := n.joinLocked(r); err != nil {
			return err
		}
	}
	n.bySession[r.session] = r
	return nil
}

// joinLocked adds a node to its group.
func (n *nodes) joinLocked(r *registrant) error {
	g := n.groups[r.member.Name]
	if g == nil {
		g = n.groupLocked(r.member.Name)
	}
	if err := g.vacantFor(r); err != nil {
		return err
	}
	if was := g.members[r.member.ID]; was != nil {
		was.end(outer.ErrReplaced)
	}
	g.members[r.member.ID] = r
	n.changeLocked(g, r)
	return nil
}

// vacantFor returns an error if nodes of another identity have the name. Nodes with less right to
// the name are displaced instead: otherwise any node could keep a name from its owners.
func (g *group) vacantFor(r *registrant) error {
	for _, m := range g.members {
		if m.member.Identity != r.member.Identity && m.right() >= r.right() {
			return outer.ErrNameTaken.Withf("the name %s belongs to another identity, which has nodes here", r.member.Name)
		}
	}
	for id, m := range g.members {
		if m.member.Identity != r.member.Identity {
			delete(g.members, id)
			r.ousted = append(r.ousted, m)
			m.end(outer.ErrNameTaken.Withf("a node with the proven identity %s has registered, which has more right to the name %s", r.member.Identity, r.member.Name))
		}
	}
	return nil
}

// right returns how strong the right of a node to its name is. A node displaces those with less
// right.
func (r *registrant) right() int {
	switch r.member.Identity {
	case "":
		return 0
	case r.member.Name:
		return 2
	}
	return 1
}

// groupLocked creates the group of a name.
func (n *nodes) groupLocked(name string) *group {
	g := &group{members: make(map[string]*registrant), abroad: make(map[string]versioned), stop: func() {}}
	n.groups[name] = g
	return g
}

// changeLocked records a change of a node.
func (n *nodes) changeLocked(g *group, r *registrant) {
	n.version++
	r.version = n.version
	g.changed.Signal()
}

// leave removes a node.
func (n *nodes) leave(r *registrant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.bySession, r.session)
	g := n.groups[r.member.Name]
	if g == nil || g.members[r.member.ID] != r {
		return
	}
	delete(g.members, r.member.ID)
	g.changed.Signal()
	n.dropLocked(r.member.Name, g)
}

// dropLocked removes a group without nodes and watchers.
func (n *nodes) dropLocked(name string, g *group) {
	if g.uses == 0 && len(g.members) == 0 {
		delete(n.groups, name)
	}
}

// setState sets the state of a node.
func (n *nodes) setState(r *registrant, s outer.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s == outer.Draining && r.member.State != s {
		select {
		case <-r.draining:
		default:
			close(r.draining)
		}
	}
	r.member.State = s
	if g := n.groups[r.member.Name]; g != nil && g.members[r.member.ID] == r {
		n.changeLocked(g, r)
	}
}

// of returns the node of a session; nil: it has not registered.
func (n *nodes) of(s *asterisque.Session) *registrant {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bySession[s]
}

// find returns the node of a name with an id, or nil.
func (n *nodes) find(name, id string) *registrant {
	n.mu.Lock()
	defer n.mu.Unlock()
	if g := n.groups[name]; g != nil {
		return g.members[id]
	}
	return nil
}

// use returns the group of a name, and a function that releases it.
func (n *nodes) use(name string) (g *group, leave func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if g = n.groups[name]; g == nil {
		g = n.groupLocked(name)
	}
	if g.uses++; g.uses == 1 && n.follow != nil {
		var ctx context.Context
		ctx, g.stop = context.WithCancel(context.Background())
		n.follow(ctx, name, g)
	}
	return g, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if g.uses--; g.uses == 0 {
			g.stop()
			clear(g.abroad)
			g.foreign = nil
		}
		n.dropLocked(name, g)
	}
}

// versioned is a version of a node.
type versioned struct {
	outer.Member
	version uint64
}

// all returns the nodes of a group, by id. The information of a local node has precedence.
func (n *nodes) all(g *group) map[string]versioned {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(map[string]versioned, len(g.members))
	maps.Copy(all, g.foreign)
	maps.Copy(all, g.abroad)
	for id, r := range g.members {
		all[id] = versioned{r.member, r.version}
	}
	return all
}

// count returns the numbers of nodes and of names.
func (n *nodes) count() (nodes, names int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.groups {
		if len(g.members) > 0 {
			names++
		}
	}
	return len(n.bySession), names
}
