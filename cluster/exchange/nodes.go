package exchange

import (
	"context"
	"maps"
	"sync"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// registeredNode is a registered node.
type registeredNode struct {
	session *asterisque.Session // fixed, as all of member but its state
	end     context.CancelCauseFunc
	relays  semaphore // semaphore of its relayed sessions
	watched semaphore // semaphore of its watched names

	draining chan struct{}     // closed when the node drains
	gone     chan struct{}     // closed when it is no longer registered or shown
	ousted   []*registeredNode // nodes that it has displaced; set by enter

	member  relayproto.Member // guarded by nodeRegistry.mu, as version
	version uint64            // of member
}

// nodeRegistry are the registered nodes.
type nodeRegistry struct {
	// keeps remote and foreign of a group current until ctx ends; nil: without a cluster; fixed
	follow func(ctx context.Context, name string, g *nodeGroup)

	mu        sync.Mutex
	bySession map[*asterisque.Session]*registeredNode // guarded by mu, as all below
	groups    map[string]*nodeGroup                   // by name
	version   uint64                                  // of the last change
}

// nodeGroup is the nodes of one name. It exists while it has nodes or watchers.
type nodeGroup struct {
	members map[string]*registeredNode // by id; guarded by nodeRegistry.mu, as all but changed
	remote  map[string]nodeVersion     // those in the cluster, while there are uses
	foreign map[string]nodeVersion     // those in other domains; replaced as a whole
	uses    int                        // number of watchers
	stop    context.CancelFunc         // ends the updates of remote and foreign
	changed wait.Notice
}

func newNodes() *nodeRegistry {
	return &nodeRegistry{bySession: make(map[*asterisque.Session]*registeredNode), groups: make(map[string]*nodeGroup)}
}

// enter registers a node, replacing one of the same name, id and identity.
func (n *nodeRegistry) enter(r *registeredNode) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bySession[r.session] != nil {
		return relayproto.ErrBadRegistration.Withf("this session has registered already, and registers one node")
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
func (n *nodeRegistry) joinLocked(r *registeredNode) error {
	g := n.groups[r.member.Name]
	if g == nil {
		g = n.groupLocked(r.member.Name)
	}
	if err := g.vacantFor(r); err != nil {
		return err
	}
	if was := g.members[r.member.ID]; was != nil {
		was.end(relayproto.ErrReplaced)
	}
	g.members[r.member.ID] = r
	n.changeLocked(g, r)
	return nil
}

// vacantFor returns an error if nodes of another identity have the name. Nodes with less right to
// the name are displaced instead: otherwise any node could keep a name from its owners.
func (g *nodeGroup) vacantFor(r *registeredNode) error {
	for _, m := range g.members {
		if m.member.Identity != r.member.Identity && m.right() >= r.right() {
			return relayproto.ErrNameTaken.Withf("the name %s belongs to another identity, which has nodes here", r.member.Name)
		}
	}
	for id, m := range g.members {
		if m.member.Identity != r.member.Identity {
			delete(g.members, id)
			r.ousted = append(r.ousted, m)
			m.end(relayproto.ErrNameTaken.Withf("a node with the proven identity %s has registered, which has more right to the name %s", r.member.Identity, r.member.Name))
		}
	}
	return nil
}

// right returns how strong the right of a node to its name is. A node displaces those with less
// right.
func (r *registeredNode) right() int {
	switch r.member.Identity {
	case "":
		return 0
	case r.member.Name:
		return 2
	}
	return 1
}

// groupLocked creates the group of a name.
func (n *nodeRegistry) groupLocked(name string) *nodeGroup {
	g := &nodeGroup{members: make(map[string]*registeredNode), remote: make(map[string]nodeVersion), stop: func() {}}
	n.groups[name] = g
	return g
}

// changeLocked records a change of a node.
func (n *nodeRegistry) changeLocked(g *nodeGroup, r *registeredNode) {
	n.version++
	r.version = n.version
	g.changed.Signal()
}

// leave removes a node.
func (n *nodeRegistry) leave(r *registeredNode) {
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
func (n *nodeRegistry) dropLocked(name string, g *nodeGroup) {
	if g.uses == 0 && len(g.members) == 0 {
		delete(n.groups, name)
	}
}

// setState sets the state of a node.
func (n *nodeRegistry) setState(r *registeredNode, s relayproto.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s == relayproto.Draining && r.member.State != s {
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
func (n *nodeRegistry) of(s *asterisque.Session) *registeredNode {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bySession[s]
}

// find returns the node of a name with an id, or nil.
func (n *nodeRegistry) find(name, id string) *registeredNode {
	n.mu.Lock()
	defer n.mu.Unlock()
	if g := n.groups[name]; g != nil {
		return g.members[id]
	}
	return nil
}

// use returns the group of a name, and a function that releases it.
func (n *nodeRegistry) use(name string) (g *nodeGroup, leave func()) {
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
			clear(g.remote)
			g.foreign = nil
		}
		n.dropLocked(name, g)
	}
}

// nodeVersion is a version of a node.
type nodeVersion struct {
	relayproto.Member
	version uint64
}

// all returns the nodes of a group, by id. The information of a local node has precedence.
func (n *nodeRegistry) all(g *nodeGroup) map[string]nodeVersion {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(map[string]nodeVersion, len(g.members))
	maps.Copy(all, g.foreign)
	maps.Copy(all, g.remote)
	for id, r := range g.members {
		all[id] = nodeVersion{r.member, r.version}
	}
	return all
}

// count returns the numbers of nodes and of names.
func (n *nodeRegistry) count() (nodes, names int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.groups {
		if len(g.members) > 0 {
			names++
		}
	}
	return len(n.bySession), names
}
