package cluster

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/presence"
	"github.com/asterisque-go/asterisque/wire"
)

// Config configures a node of a cluster. The zero Config is a node that only makes calls, in the
// cluster of this machine.
type Config struct {
	// Name is the name under which the node is called, together with all other nodes of that name:
	// "orders". It has 1 to 64 letters, digits, '-' and '_'. A node without a name can call other
	// nodes, and is neither listed nor called.
	Name string

	// ID identifies the node in the cluster and to its peers ([asterisque.WithID]). It has 1 to 64
	// characters, the same as in Name. A node that joins with the name and the id of a present node
	// replaces it. An empty ID is replaced by a random one.
	ID string

	// NATS is the list of NATS server URLs, in the format of nats.Connect: one URL, or several of
	// one NATS cluster, separated by commas. Empty is the server of this machine, at
	// 127.0.0.1:4222, which broker.StartLocal starts if needed.
	NATS string

	// Options are additional options of the connection to NATS: nats.UserCredentials, nats.Nkey,
	// nats.RootCAs and so on.
	Options []nats.Option

	// Listen are the addresses at which the node listens for sessions, such as "tls://10.0.0.7:0".
	// Without an address, other nodes reach it through NATS.
	Listen []string

	// Addresses are the addresses to dial, in the order of preference, if they differ from those of
	// Listen: behind a network address translation, or if Listen has no host. At most 8.
	Addresses []string

	// TLS is the configuration for "tls://" addresses. With it, the two ends of a session through
	// NATS do TLS with each other as well, so that the NATS servers need not be trusted. Either all
	// nodes of a cluster have it, or none. See Identity for the name in the certificates.
	TLS *tls.Config

	// Identity is the name that the certificate of each node of this name has to prove. Empty is
	// Name itself. A node cannot join with a name while nodes of another identity use it. Without
	// TLS this guards against mistakes only.
	Identity string

	// Region is the region of the node, such as "eu-west", for [WithNear].
	Region string

	// Metadata is further public information about the node, shown in [Member].
	Metadata map[string]string

	// Version is the semantic version of the program, such as "1.4.2", for operators and the tools
	// of NATS. It may be empty.
	Version string

	// Service contains the functions of the node. The tools of NATS list them ("nats micro ls"). It
	// may be nil. An option of Join ([asterisque.WithService]) replaces it for sessions.
	Service *asterisque.Service

	// Endpoints are functions of Service that plain NATS clients can call.
	Endpoints []Endpoint

	// ResumeAnywhere makes the nodes of a name act as one address for a resume: a peer that has
	// lost its wire can resume its session at any of them. It needs [asterisque.WithResume] among
	// the options of Join. A bucket entry records the node of each session. The node that the peer
	// reconnects to relays the session there through NATS. With TLS the certificates of the nodes
	// have to be valid for clients as well, since the two nodes prove to each other that they
	// belong to the name. If the node of the session is gone, the session ends.
	ResumeAnywhere bool

	// Hidden hides the node from the tools of NATS: for accounts that may not subscribe to
	// "$SRV.>".
	Hidden bool

	// Cluster is the name of the cluster, such as "production", so that nodes of another cluster do
	// not join by accident. Empty is "asterisque".
	Cluster string

	// Prefix is part of all subjects and buckets of the cluster in NATS. It has 1 to 64 characters,
	// the same as in Name. Clusters in one NATS account need different prefixes. Empty is "main".
	Prefix string

	// Durable makes the nodes of the name share their records of durable calls. nil: each node
	// keeps its own.
	Durable *Durable

	// Queue makes the node take calls that were posted to its name while no node was there, and
	// sets the limits of the queue: see [Post]. nil: the node takes none, and posts as with
	// Queue{}.
	Queue *Queue

	// Replicas is the number of NATS servers that store the information about the nodes of the
	// cluster: 1, 3 or 5. All nodes have to use the same number. 0 is 1.
	Replicas int

	// InMemory makes the NATS servers keep what the cluster stores in memory, and lose it when they
	// stop: all of it, if Replicas is 1. Nodes announce themselves again then. Posted calls and the
	// records of durable calls are lost, and a key may have two holders until the lease of the
	// earlier one ends, 15 seconds later at most. All nodes have to use the same value.
	InMemory bool

	takes bool // the node takes posted calls
}

// storage returns the storage type of streams and buckets.
func (c *Config) storage() jetstream.StorageType {
	if c.InMemory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

const (
	lifeTime   = 15 * time.Second // without a sign of life, until a node counts as lost
	beatTime   = lifeTime / 3     // between signs of life
	recordTime = time.Hour        // until an unrenewed record of a session expires

	mostMetadata = 4 << 10 // bytes, with the keys
)

// complete returns c with its defaults, or an error if c is invalid.
func (c Config) complete() (Config, error) {
	c.ID = defaulted(c.ID, strings.ToLower(rand.Text()[:16]))
	c.Prefix = defaulted(c.Prefix, "main")
	c.Cluster = defaulted(c.Cluster, "asterisque")
	c.Identity = defaulted(c.Identity, c.Name)
	c.Replicas = defaulted(c.Replicas, 1)
	c.Addresses = slices.Clone(c.Addresses)
	if err := c.completeQueue(); err != nil {
		return c, fmt.Errorf("cluster: %w", err)
	}
	if c.Durable != nil {
		d, err := c.Durable.complete()
		if err != nil {
			return c, fmt.Errorf("cluster: %w", err)
		}
		c.Durable = &d
	}
	if err := c.check(); err != nil {
		return c, fmt.Errorf("cluster: %w", err)
	}
	return c, nil
}

// completeQueue sets the defaults of Queue.
func (c *Config) completeQueue() error {
	c.takes = c.Queue != nil && c.Name != ""
	if c.takes && c.Durable == nil {
		return errors.New("a call that waits may be handed out twice: Config.Queue is set, and Config.Durable is not, by which it runs once")
	}
	if c.Queue == nil {
		c.Queue = new(Queue)
	}
	q, err := c.Queue.complete()
	c.Queue = &q
	return err
}

// defaulted returns v, or other if that is the zero value.
func defaulted[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// check returns an error if a complete Config is invalid.
func (c Config) check() error {
	for what, text := range map[string]string{"Name": c.Name, "ID": c.ID, "Prefix": c.Prefix} {
		if text != "" && !kv.IsToken(text) {
			return fmt.Errorf("%s is %q: it has 1 to 64 letters, digits, '-' and '_'", "Config."+what, text)
		}
	}
	size := 0
	for k, v := range c.Metadata {
		size += len(k) + len(v)
	}
	switch {
	case c.Name == "" && (len(c.Listen)+len(c.Addresses)+len(c.Endpoints) > 0 || c.ResumeAnywhere):
		return errors.New("a node that is called needs a name: Config.Name is empty")
	case c.Name == "" && c.Durable != nil:
		return errors.New("the nodes of a name remember durable calls together: Config.Durable is set, and Config.Name is empty")
	case !slices.Contains([]int{1, 3, 5}, c.Replicas):
		return fmt.Errorf("Config.Replicas is %d: it is 1, 3 or 5", c.Replicas)
	case size > mostMetadata:
		return fmt.Errorf("Config.Metadata has %d bytes, and %d are allowed", size, mostMetadata)
	case max(len(c.Identity), len(c.Region), len(c.Version), len(c.Cluster)) > 255:
		return errors.New("the Identity, Region, Version and Cluster of a Config have at most 255 bytes each")
	}
	return c.checkAddresses()
}

func (c Config) checkAddresses() error {
	if n := max(len(c.Addresses), len(c.Listen)); n > presence.MostAddresses {
		return fmt.Errorf("there are %d addresses, and at most %d for a node", n, presence.MostAddresses)
	}
	for _, a := range slices.Concat(c.Listen, c.Addresses) {
		if err := wire.CheckURL(a); err != nil {
			return err
		}
		if len(a) > 255 {
			return fmt.Errorf("an address has %d bytes, and 255 are allowed", len(a))
		}
	}
	return nil
}

// reachable returns an error if other nodes cannot dial an address of Listen.
func reachable(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	switch u.Hostname() {
	case "0.0.0.0", "::":
		return fmt.Errorf("cluster: the node listens at %s, which other nodes cannot dial: set Config.Addresses to addresses that they can", address)
	}
	return nil
}
