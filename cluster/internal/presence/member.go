package presence

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// State is the state of a node.
type State string

const (
	Present  State = "present"
	Draining State = "draining"
)

// Member is a node, as it describes itself in its entry.
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
	Durable   bool              `json:"durable,omitempty"` // it shares its records of durable calls
	Metadata  map[string]string `json:"metadata,omitempty"`

	Revision uint64 `json:"-"` // of its entry
}

// MostAddresses is the maximum number of addresses of a node.
const MostAddresses = 8

// Key returns the key of the node in the buckets.
func (m *Member) Key() string { return m.Name + "." + m.ID }

// Encode returns the entry of a node.
func (m *Member) Encode() []byte {
	b, _ := json.Marshal(m) // strings and a time can be encoded
	return b
}

// Decode returns the node of an entry. Any client with write access may have written it.
func Decode(e jetstream.KeyValueEntry) (m Member, err error) {
	if err := json.Unmarshal(e.Value(), &m); err != nil {
		return m, fmt.Errorf("the entry %s is none of a node: %w", e.Key(), err)
	}
	if m.Key() != e.Key() || !kv.IsToken(m.ID) || len(m.Addresses) > MostAddresses {
		return m, fmt.Errorf("the entry %s is that of no such node", e.Key())
	}
	m.Revision = e.Revision()
	return m, nil
}

// Kind is the kind of a change in the members of a name.
type Kind string

const (
	Joined  Kind = "joined"
	Changed Kind = "changed" // its own information has changed
	Drains  Kind = "draining"
	Left    Kind = "left"
	Lost    Kind = "lost"
)

// Change is a change of the members of a name.
type Change struct {
	Kind   Kind
	Member Member // the present or last state
}
