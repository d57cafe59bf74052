package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
)

// State is the state of a node.
type State = string

const (
	Present  State = "present"  // it takes calls
	Draining State = "draining" // it shuts down, and completes its running calls
)

// Member is a node at the exchange, as seen by other nodes. The node itself provides all of it,
// except for Identity and Since.
type Member struct {
	Name     string
	ID       string
	Instance string // differs for each start of the program
	State    State
	Since    time.Time // when it registered
	Identity string    // proved to the exchange; empty: none
	Region   string
	Version  string
	Metadata map[string]string

	// Durable reports that the nodes of the name share their records of durable calls
	// (Config.Durable of package cluster): after the loss of its node, a call continues at another
	// one of them. It is false for a node at an exchange.
	Durable bool
}

// String returns the name and the id of the node.
func (m Member) String() string { return m.Name + " " + m.ID }

// memberOf converts a member of the protocol.
func memberOf(m relayproto.Member) Member {
	return Member{m.Name, m.ID, m.Instance, string(m.State), m.Since, m.Identity, m.Region, m.Version, m.Metadata, m.Durable}
}

// Members returns the nodes of a name that this node may reach, in the order of their ids. An empty
// result is not an error. It waits for the exchange, until ctx ends.
func (a *Agent) Members(ctx context.Context, name string) ([]Member, error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var found []Member
	over := false
	err := a.watch(ctx, name, func(members []Member) bool {
		found, over = members, true
		return false
	})
	if over {
		return found, nil
	}
	return nil, fmt.Errorf("agent: the nodes of the name %s are not known: %w", name, err)
}

// watch calls yield with the nodes of a name after each change, until yield returns false, the
// exchange ends the call, or ctx ends.
func (a *Agent) watch(ctx context.Context, name string, yield func([]Member) bool) error {
	s, err := a.await(ctx)
	if err != nil {
		return err
	}
	call, err := relayproto.Members.Open(ctx, s, name)
	if err != nil {
		return err
	}
	defer call.Abort(nil)
	members := make(map[string]Member)
	for {
		c, err := call.Recv(ctx)
		if err != nil {
			why, _ := told(err)
			return why
		}
		for _, m := range c.There {
			members[m.ID] = memberOf(m)
		}
		for _, id := range c.Gone {
			delete(members, id)
		}
		if c.All && !yield(slices.SortedFunc(maps.Values(members), byID)) {
			return nil
		}
	}
}

func byID(a, b Member) int { return cmp.Compare(a.ID, b.ID) }
