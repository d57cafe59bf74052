package cluster

import (
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/presence"
)

// State is the state of a node of a cluster.
type State string

const (
	Present  State = "present"  // it takes calls
	Draining State = "draining" // it shuts down gracefully: [asterisque.Node.Shutdown]
)

// Member is a node of a cluster, as seen by other nodes. The node itself provides all of it.
type Member struct {
	Name      string            `json:"name"`
	ID        string            `json:"id"`
	Instance  string            `json:"instance"` // differs for each start of the program
	State     State             `json:"state"`
	Since     time.Time         `json:"since"`
	Addresses []string          `json:"addresses,omitempty"` // for direct connections
	Identity  string            `json:"identity"`
	Region    string            `json:"region,omitempty"`
	Version   string            `json:"version,omitempty"`
	Durable   bool              `json:"durable,omitempty"` // Config.Durable is set
	Metadata  map[string]string `json:"metadata,omitempty"`

	revision uint64 // of its entry
}

// String returns the name and the id of the node.
func (m Member) String() string { return m.Name + " " + m.ID }

// key returns the key of the node in the buckets.
func (m Member) key() string { return m.Name + "." + m.ID }

// entry returns the entry of the node.
func (m Member) entry() presence.Member {
	return presence.Member{
		Name: m.Name, ID: m.ID, Instance: m.Instance, State: presence.State(m.State), Since: m.Since,
		Addresses: m.Addresses, Identity: m.Identity, Region: m.Region, Version: m.Version,
		Durable: m.Durable, Metadata: m.Metadata, Revision: m.revision,
	}
}

// memberOf is the inverse of entry.
func memberOf(e presence.Member) Member {
	return Member{
		Name: e.Name, ID: e.ID, Instance: e.Instance, State: State(e.State), Since: e.Since,
		Addresses: e.Addresses, Identity: e.Identity, Region: e.Region, Version: e.Version,
		Durable: e.Durable, Metadata: e.Metadata, revision: e.Revision,
	}
}

// membersOf returns the nodes of entries.
func membersOf(entries []presence.Member) []Member {
	members := make([]Member, len(entries))
	for i, e := range entries {
		members[i] = memberOf(e)
	}
	return members
}

// Kind is the kind of a change in the members of a name.
type Kind string

const (
	Joined  Kind = "joined"  // a node has joined, or its program was restarted
	Changed Kind = "changed" // its own information has changed
	Drains  Kind = "draining"
	Left    Kind = "left" // it has left by Close or Shutdown
	Lost    Kind = "lost" // it has ended otherwise, or cannot be reached through NATS
)

// Change is a change of the members of a name.
type Change struct {
	Kind   Kind
	Member Member // the present or last state
}
