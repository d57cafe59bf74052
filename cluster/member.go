package cluster

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
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
func (m *Member) key() string { return m.Name + "." + m.ID }

// encode returns the entry of a node.
func (m *Member) encode() []byte {
	b, _ := json.Marshal(m) // strings and a time can be encoded
	return b
}

// decodeMember returns the node of an entry. Any client with write access may have written it.
func decodeMember(e jetstream.KeyValueEntry) (m Member, err error) {
	if err := json.Unmarshal(e.Value(), &m); err != nil {
		return m, fmt.Errorf("the entry %s is none of a node: %w", e.Key(), err)
	}
	if m.key() != e.Key() || !kv.IsToken(m.ID) || len(m.Addresses) > mostAddresses {
		return m, fmt.Errorf("the entry %s is that of no such node", e.Key())
	}
	m.revision = e.Revision()
	return m, nil
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
