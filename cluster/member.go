package cluster

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// State says what a node of a cluster does.
type State string

const (
	Present  State = "present"  // it takes calls
	Draining State = "draining" // it goes, and finishes what it runs: [asterisque.Node.Shutdown]
)

// Member is a node of a cluster, as the others see it. All of it is what the node says of itself.
type Member struct {
	Name      string            `json:"name"`
	ID        string            `json:"id"`
	Instance  string            `json:"instance"` // another one each time that the program starts
	State     State             `json:"state"`
	Since     time.Time         `json:"since"`
	Addresses []string          `json:"addresses,omitempty"` // where it can be dialled directly
	Identity  string            `json:"identity"`
	Region    string            `json:"region,omitempty"`
	Version   string            `json:"version,omitempty"`
	Durable   bool              `json:"durable,omitempty"` // as Config.Durable
	Metadata  map[string]string `json:"metadata,omitempty"`

	revision uint64 // of its entry
}

// String names the node for people.
func (m Member) String() string { return m.Name + " " + m.ID }

// key returns the key of the node in the buckets.
func (m *Member) key() string { return m.Name + "." + m.ID }

// encode returns the entry of a node.
func (m *Member) encode() []byte {
	b, _ := json.Marshal(m) // strings and a time can be encoded
	return b
}

// decodeMember returns the node of an entry, which anybody may have written who may write there.
func decodeMember(e jetstream.KeyValueEntry) (m Member, err error) {
	if err := json.Unmarshal(e.Value(), &m); err != nil {
		return m, fmt.Errorf("the entry %s is none of a node: %w", e.Key(), err)
	}
	if m.key() != e.Key() || !token.MatchString(m.ID) || len(m.Addresses) > mostAddresses {
		return m, fmt.Errorf("the entry %s is that of no such node", e.Key())
	}
	m.revision = e.Revision()
	return m, nil
}

// Kind is how the members of a name have changed.
type Kind string

const (
	Joined  Kind = "joined"  // a node is there that was not, or its program was started again
	Changed Kind = "changed" // it says something else of itself
	Drains  Kind = "draining"
	Left    Kind = "left" // it has gone in good order
	Lost    Kind = "lost" // it has gone otherwise, or cannot be reached through NATS
)

// Change is a change of the members of a name.
type Change struct {
	Kind   Kind
	Member Member // as it is, or was
}
