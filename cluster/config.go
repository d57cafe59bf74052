package cluster

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// Config says how a node takes part in a cluster. The zero Config is that of a node which only
// calls, in the cluster of this machine.
type Config struct {
	// Name is what others call the node by, together with all others of that name: "orders". It has
	// 1 to 64 letters, digits, '-' and '_'. Without a name the node calls others, and is neither
	// listed nor called.
	Name string

	// ID tells the nodes of a cluster apart, and is what their peers see ([asterisque.WithID]); as
	// Name, of 1 to 64 characters. A node that joins with the name and the id of one that is there
	// takes its place. Empty is a random one.
	ID string

	// NATS is where the NATS servers are, as nats.Connect takes it: one URL, or several of one
	// cluster with commas between. Empty is the server of this machine, at 127.0.0.1:4222: if none
	// is there, one is started within this program (see package broker), which serves others as
	// well, and ends with it.
	NATS string

	// Options are for the connection to NATS in addition: nats.UserCredentials, nats.Nkey,
	// nats.RootCAs and so on.
	Options []nats.Option

	// Listen is where the node listens for sessions, such as "tls://10.0.0.7:0". Without, others
	// reach it through NATS.
	Listen []string

	// Addresses are what others dial, in the order of preference, if that is not what the node
	// listens at: behind a translation of addresses, or where Listen has no host. At most 8.
	Addresses []string

	// TLS is for "tls://" addresses, and lets the two ends of a session through NATS do TLS with
	// each other, so that the NATS servers need not be trusted. All nodes of a cluster have it, or
	// none has. See Identity for the name in the certificates.
	TLS *tls.Config

	// Identity is whose the name is: the name that the certificate of each node of this name has to
	// prove. Empty is Name itself. A node cannot join with a name while nodes of another identity
	// have it, which without TLS guards against mistakes only.
	Identity string

	// Region is where the node is, such as "eu-west", for [WithNear].
	Region string

	// Metadata is what else others may see of the node, in [Member].
	Metadata map[string]string

	// Version is that of the program, a semantic version such as "1.4.2", for people and for the
	// tools of NATS. It may be empty.
	Version string

	// Service is what the node offers, and the tools of NATS list ("nats micro ls"). It may be nil.
	// An option of Join ([asterisque.WithService]) takes its place for sessions.
	Service *asterisque.Service

	// Endpoints are functions of Service that programs without asterisque call through NATS.
	Endpoints []Endpoint

	// ResumeAnywhere lets a peer that has lost its wire go on with its session at any node of the
	// name, as behind one address, and needs [asterisque.WithResume] among the options of Join.
	// Each session has an entry in a bucket then, which says which node has it; the node that the
	// peer comes back to relays it there through NATS. With TLS the certificates of the nodes have
	// to be good for clients as well, since the two nodes prove to each other that they are of the
	// name. If the node that has the session is gone, the session ends.
	ResumeAnywhere bool

	// Hidden lets the tools of NATS not see the node: for accounts that may not subscribe to
	// "$SRV.>".
	Hidden bool

	// Cluster names the cluster, such as "production", so that the nodes of another one do not join
	// by accident. Empty is "asterisque".
	Cluster string

	// Prefix is a part of all subjects and buckets of the cluster in NATS, as Name of 1 to 64
	// characters. Clusters in one account of NATS need one each. Empty is "main".
	Prefix string

	// Durable lets the nodes of the name remember durable calls together. nil: each node remembers
	// its own.
	Durable *Durable

	// Queue lets the node take calls that were posted to its name while nobody was there, and says
	// how much of them is kept: see [Post]. nil: it takes none, and posts as with Queue{}.
	Queue *Queue

	// Replicas is how many NATS servers keep what the nodes of the cluster know of each other: 1,
	// 3 or 5. All nodes have to say the same. 0 is 1.
	Replicas int

	takes bool // it takes posted calls

	times times // for tests
}

// times are the periods of a cluster, and what else tests set.
type times struct {
	life  time.Duration // after which a node counts as lost that has given no sign of life
	beat  time.Duration // between signs
	local string

	queueRuns  int           // posted calls that run at once
	queueAgain time.Duration // see there
	queueLook  time.Duration // see there

	record time.Duration // after which the record of a session goes that nobody has put again

	inMemory bool // streams and buckets do not outlive their server
}

// storage returns the storage type of streams and buckets, which is memory in tests alone.
func (t *times) storage() jetstream.StorageType {
	if t.inMemory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

const (
	lifeTime   = 15 * time.Second
	recordTime = time.Hour

	// localServer is where the NATS server of this machine is.
	localServer = "127.0.0.1:4222"

	mostAddresses = 8
	mostMetadata  = 4 << 10 // bytes, with the keys
)

var token = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// complete returns c with all that has a default, or what is wrong with it.
func (c Config) complete() (Config, error) {
	c.ID = defaulted(c.ID, strings.ToLower(rand.Text()[:16]))
	c.Prefix = defaulted(c.Prefix, "main")
	c.Cluster = defaulted(c.Cluster, "asterisque")
	c.Identity = defaulted(c.Identity, c.Name)
	c.Replicas = defaulted(c.Replicas, 1)
	c.times.life = defaulted(c.times.life, lifeTime)
	c.times.beat = c.times.life / 3
	c.times.local = defaulted(c.times.local, localServer)
	c.times.record = defaulted(c.times.record, recordTime)
	c.times.queueRuns = defaulted(c.times.queueRuns, queueRuns)
	c.times.queueAgain = defaulted(c.times.queueAgain, queueAgain)
	c.times.queueLook = defaulted(c.times.queueLook, queueLook)
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

// completeQueue sets the Queue to its defaults.
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

// check returns what is wrong with a complete Config.
func (c Config) check() error {
	for what, text := range map[string]string{"Name": c.Name, "ID": c.ID, "Prefix": c.Prefix} {
		if text != "" && !token.MatchString(text) {
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
	if n := max(len(c.Addresses), len(c.Listen)); n > mostAddresses {
		return fmt.Errorf("there are %d addresses, and at most %d for a node", n, mostAddresses)
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

// reachable returns why others cannot dial an address at which the node listens, or nil.
func reachable(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	switch u.Hostname() {
	case "0.0.0.0", "::":
		return fmt.Errorf("cluster: the node listens at %s, which others cannot dial: say in Config.Addresses how they reach it", address)
	}
	return nil
}
